package v1alpha1

// DiffOptions say which differences between wanted and live are no drift.
type DiffOptions struct {
	// ComparePatches apply to both sides before they are compared.
	// +optional
	// +nullable
	// +listType=atomic
	ComparePatches []ComparePatch `json:"comparePatches,omitempty"`
}

// ComparePatch takes fields of some objects out of the comparison.
type ComparePatch struct {
	// Kind is the kind of the objects.
	// +optional
	// +nullable
	Kind string `json:"kind,omitempty"`
	// APIVersion is the API version of the objects.
	// +optional
	// +nullable
	APIVersion string `json:"apiVersion,omitempty"`
	// Namespace is the namespace of the objects.
	// +optional
	// +nullable
	Namespace string `json:"namespace,omitempty"`
	// Name is the name of the objects; for the operation ignore it may be a
	// regular expression.
	// +optional
	// +nullable
	Name string `json:"name,omitempty"`
	// Operations are JSON patch operations, or ignore, which accepts that the
	// object is missing.
	// +optional
	// +nullable
	// +listType=atomic
	Operations []Operation `json:"operations,omitempty"`
	// JsonPointers are paths of fields to leave out of the comparison.
	// +optional
	// +nullable
	// +listType=atomic
	JsonPointers []string `json:"jsonPointers,omitempty"` //nolint:staticcheck // the name of the field in Rancher Fleet's own types
}

// Operation is a JSON patch operation, or ignore.
type Operation struct {
	// Op is add, remove, replace, move, copy, test or ignore.
	// +optional
	// +nullable
	Op string `json:"op,omitempty"`
	// Path is the JSON pointer of the field.
	// +optional
	// +nullable
	Path string `json:"path,omitempty"`
	// Value is the value for operations that need one.
	// +optional
	// +nullable
	Value string `json:"value,omitempty"`
}
