package v1alpha1

// HelmOptions say which chart is rendered, with which values and how.
type HelmOptions struct {
	// Chart is a directory of the bundle, a URL, an oci:// reference, or the
	// name of a chart in Repo.
	// +optional
	// +nullable
	Chart string `json:"chart,omitempty"`

	// Repo is the URL of a Helm repository.
	// +optional
	// +nullable
	Repo string `json:"repo,omitempty"`

	// ReleaseName is the name of the release, whatever the layout of the
	// bundle; empty means the bundle's name.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxLength=53
	// +kubebuilder:validation:Pattern=`^$|^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	ReleaseName string `json:"releaseName,omitempty"`

	// Version is a version or a semantic version constraint; empty means the
	// newest.
	// +optional
	// +nullable
	Version string `json:"version,omitempty"`

	// TimeoutSeconds, where positive, waits for readiness up to this long.
	// +optional
	TimeoutSeconds int `json:"timeoutSeconds,omitempty"`

	// Values are the values of the chart.
	// +optional
	// +nullable
	Values *GenericMap `json:"values,omitempty"`

	// TemplateValues are templates, one for each key of the values, whose
	// results are parsed as YAML. Each replaces that key of Values as a whole.
	// +optional
	// +nullable
	TemplateValues map[string]string `json:"templateValues,omitempty"`

	// ValuesFrom are ConfigMaps and Secrets on the cluster whose values win
	// over all others, in this order.
	// +optional
	// +nullable
	// +listType=atomic
	ValuesFrom []ValuesFrom `json:"valuesFrom,omitempty"`

	// Force replaces objects that cannot be changed in place.
	// +optional
	Force bool `json:"force,omitempty"`

	// TakeOwnership applies onto objects that exist and are not ours.
	// +optional
	TakeOwnership bool `json:"takeOwnership,omitempty"`

	// MaxHistory is the number of revisions to keep.
	// +optional
	MaxHistory int `json:"maxHistory,omitempty"`

	// ValuesFiles are files of the bundle with values; a later one wins.
	// +optional
	// +nullable
	// +listType=atomic
	ValuesFiles []string `json:"valuesFiles,omitempty"`

	// WaitForJobs waits for Jobs too, where TimeoutSeconds is set.
	// +optional
	WaitForJobs bool `json:"waitForJobs,omitempty"`

	// Atomic rolls back when an upgrade fails.
	// +optional
	Atomic bool `json:"atomic,omitempty"`

	// DisablePreProcess leaves ${ } templates in the values as they are, and
	// TemplateValues aside. Texts that begin with global.fleet.clusterLabels.
	// are filled in all the same.
	// +optional
	DisablePreProcess bool `json:"disablePreProcess,omitempty"`

	// DisableDNS turns the template function getHostByName off.
	// +optional
	DisableDNS bool `json:"disableDNS,omitempty"`

	// SkipSchemaValidation does not check values against values.schema.json.
	// +optional
	SkipSchemaValidation bool `json:"skipSchemaValidation,omitempty"`

	// DisableDependencyUpdate does not fetch the dependencies of the chart.
	// +optional
	DisableDependencyUpdate bool `json:"disableDependencyUpdate,omitempty"`
}

// ValuesFrom names a ConfigMap, a Secret or both that hold values.
type ValuesFrom struct {
	// ConfigMapKeyRef is a key of a ConfigMap.
	// +optional
	// +nullable
	ConfigMapKeyRef *ConfigMapKeySelector `json:"configMapKeyRef,omitempty"`
	// SecretKeyRef is a key of a Secret.
	// +optional
	// +nullable
	SecretKeyRef *SecretKeySelector `json:"secretKeyRef,omitempty"`
}

// LocalObjectReference names an object in a namespace known from context.
type LocalObjectReference struct {
	// Name is the object's name.
	// +optional
	// +nullable
	Name string `json:"name,omitempty"`
}

// ConfigMapKeySelector names a key of a ConfigMap.
type ConfigMapKeySelector struct {
	LocalObjectReference `json:",inline"`
	// Namespace is the object's namespace; empty means the release namespace.
	// +optional
	// +nullable
	Namespace string `json:"namespace,omitempty"`
	// Key is the key; empty means values.yaml.
	// +optional
	// +nullable
	Key string `json:"key,omitempty"`
}

// SecretKeySelector names a key of a Secret.
type SecretKeySelector struct {
	LocalObjectReference `json:",inline"`
	// Namespace is the object's namespace; empty means the release namespace.
	// +optional
	// +nullable
	Namespace string `json:"namespace,omitempty"`
	// Key is the key; empty means values.yaml.
	// +optional
	// +nullable
	Key string `json:"key,omitempty"`
}
