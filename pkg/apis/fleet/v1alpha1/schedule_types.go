package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Schedule says when clusters may be deployed to.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=schedules,categories=fleet
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:printcolumn:name="Schedule",type=string,JSONPath=`.spec.schedule`
// +kubebuilder:printcolumn:name="Duration",type=string,JSONPath=`.spec.duration`
// +kubebuilder:printcolumn:name="Active",type=boolean,JSONPath=`.status.active`
// +kubebuilder:printcolumn:name="NextStart",type=string,JSONPath=`.status.nextStartTime`
type Schedule struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is wanted.
	// +optional
	Spec ScheduleSpec `json:"spec,omitempty,omitzero"`
	// Status is what was seen.
	// +optional
	Status ScheduleStatus `json:"status,omitempty,omitzero"`
}

// ScheduleList is a list of Schedule objects.
//
// +kubebuilder:object:root=true
type ScheduleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the objects of the list.
	Items []Schedule `json:"items"`
}

// ScheduleSpec is what is wanted of a schedule.
type ScheduleSpec struct {
	// Schedule is when the window opens, as a cron expression that begins with the
	// seconds.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^ *(@[a-z]+|([^ ]+ +){5,6}[^ ]+) *$')",message="must be a cron expression of six fields that begins with the seconds (second minute hour day month weekday), such as '0 0 22 * * *' for every day at 22:00"
	Schedule string `json:"schedule,omitempty"`
	// Duration is how long the window stays open.
	// +optional
	// +nullable
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self == '0' || (self.matches('^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$') && duration(self) <= duration('2562047h'))",message="must be a duration with the units ns, us, µs, ms, s, m and h, such as 15s, 5m or 1h30m, of at most 2562047h; days (d) and weeks (w) are not known: write 24h or 168h"
	Duration *metav1.Duration `json:"duration,omitempty"`
	// Location is the time zone of the schedule, such as Europe/Berlin.
	// +optional
	// +kubebuilder:default=UTC
	Location string `json:"location,omitempty"`
	// Targets are the clusters that the schedule is for.
	// +optional
	// +nullable
	Targets ScheduleTargets `json:"targets,omitempty,omitzero"`
}

// ScheduleTargets are the clusters that a schedule is for.
type ScheduleTargets struct {
	// Clusters select the clusters.
	// +optional
	// +nullable
	// +listType=atomic
	Clusters []ScheduleTarget `json:"clusters,omitempty"`
}

// ScheduleTarget selects clusters. All criteria that are given must hold.
type ScheduleTarget struct {
	// Name is the name of the target.
	// +optional
	// +nullable
	Name string `json:"name,omitempty"`
	// ClusterName is the name of one cluster.
	// +optional
	// +nullable
	ClusterName string `json:"clusterName,omitempty"`
	// ClusterSelector selects clusters by their labels; {} selects all.
	// +optional
	// +nullable
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`
	// ClusterGroup is the name of a cluster group.
	// +optional
	// +nullable
	ClusterGroup string `json:"clusterGroup,omitempty"`
	// ClusterGroupSelector selects cluster groups by their labels.
	// +optional
	// +nullable
	ClusterGroupSelector *metav1.LabelSelector `json:"clusterGroupSelector,omitempty"`
}

// ScheduleStatus is what was seen of a schedule.
type ScheduleStatus struct {
	// Conditions are observations about the object.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`
	// Active says that the window is open.
	// +optional
	Active bool `json:"active,omitempty"`
	// NextStartTime is when the window opens next.
	// +optional
	// +nullable
	NextStartTime metav1.Time `json:"nextStartTime,omitempty,omitzero"`
	// MatchingClusters are the clusters that the schedule is for.
	// +optional
	// +listType=atomic
	MatchingClusters []string `json:"matchingClusters,omitempty"`
}
