package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// Group is the API group of all kinds of this package.
	Group = "fleet.cattle.io"
	// Version is the version of the API that this package holds.
	Version = "v1alpha1"
)

// SchemeGroupVersion is the group and version of all kinds of this package.
var SchemeGroupVersion = schema.GroupVersion{Group: Group, Version: Version}

// GroupVersion is SchemeGroupVersion under the name that generated projects use.
var GroupVersion = SchemeGroupVersion

// AddToScheme registers all kinds of the group.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion,
		&Bundle{}, &BundleList{},
		&BundleDeployment{}, &BundleDeploymentList{},
		&BundleNamespaceMapping{}, &BundleNamespaceMappingList{},
		&Cluster{}, &ClusterList{},
		&ClusterGroup{}, &ClusterGroupList{},
		&ClusterRegistration{}, &ClusterRegistrationList{},
		&ClusterRegistrationToken{}, &ClusterRegistrationTokenList{},
		&Content{}, &ContentList{},
		&GitRepo{}, &GitRepoList{},
		&GitRepoRestriction{}, &GitRepoRestrictionList{},
		&HelmOp{}, &HelmOpList{},
		&ImageScan{}, &ImageScanList{},
		&Policy{}, &PolicyList{},
		&Schedule{}, &ScheduleList{},
	)
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}
