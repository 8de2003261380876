package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Condition is one observation about an object.
type Condition struct {
	// Type is the type of the condition.
	Type string `json:"type"`
	// Status is True, False or Unknown.
	Status metav1.ConditionStatus `json:"status"`
	// LastUpdateTime is the time of the last change of the condition.
	// +optional
	LastUpdateTime string `json:"lastUpdateTime,omitempty"`
	// LastTransitionTime is the time of the last change of the status.
	// +optional
	LastTransitionTime string `json:"lastTransitionTime,omitempty"`
	// Reason is a CamelCase word for the cause of the last change.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message says what is the matter, for a human reader.
	// +optional
	Message string `json:"message,omitempty"`
}

// FindCondition returns the condition of the given type, or nil.
func FindCondition(conditions []Condition, conditionType string) *Condition {
	for i := range conditions {
		if conditions[i].Type == conditionType {
			return &conditions[i]
		}
	}
	return nil
}

// IsConditionTrue tells whether the condition is there and True.
func IsConditionTrue(conditions []Condition, conditionType string) bool {
	c := FindCondition(conditions, conditionType)
	return c != nil && c.Status == metav1.ConditionTrue
}

// SetCondition puts want into conditions and tells whether that changed
// anything. Times move only with what they date, so that writing the same
// condition again is no change.
func SetCondition(conditions *[]Condition, want Condition, now time.Time) bool {
	stamp := now.UTC().Format(time.RFC3339)
	old := FindCondition(*conditions, want.Type)
	if old == nil {
		want.LastUpdateTime, want.LastTransitionTime = stamp, stamp
		*conditions = append(*conditions, want)
		return true
	}
	if old.Status == want.Status && old.Reason == want.Reason && old.Message == want.Message {
		return false
	}
	want.LastUpdateTime, want.LastTransitionTime = stamp, stamp
	if old.Status == want.Status {
		want.LastTransitionTime = old.LastTransitionTime
	}
	*old = want
	return true
}

// RemoveCondition takes the condition away and tells whether it was there.
func RemoveCondition(conditions *[]Condition, conditionType string) bool {
	for i := range *conditions {
		if (*conditions)[i].Type == conditionType {
			*conditions = append((*conditions)[:i], (*conditions)[i+1:]...)
			return true
		}
	}
	return false
}
