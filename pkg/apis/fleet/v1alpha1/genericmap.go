package v1alpha1

import (
	"encoding/json"
	"maps"

	"k8s.io/apimachinery/pkg/runtime"
)

// GenericMap is a free-form object, such as Helm values.
//
// +kubebuilder:validation:Type=object
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:object:generate=false
type GenericMap struct {
	// Data is the object itself; it is not wrapped in the JSON form.
	Data map[string]any `json:"-"`
}

// MarshalJSON writes the object itself; a nil map is written as an empty
// object, because null would not pass the schema.
func (g GenericMap) MarshalJSON() ([]byte, error) {
	if g.Data == nil {
		return []byte("{}"), nil
	}
	return json.Marshal(g.Data)
}

// UnmarshalJSON reads any JSON object.
func (g *GenericMap) UnmarshalJSON(data []byte) error {
	g.Data = nil
	return json.Unmarshal(data, &g.Data)
}

// DeepCopyInto copies the object and everything below it.
func (g *GenericMap) DeepCopyInto(out *GenericMap) {
	out.Data = nil
	if g.Data != nil {
		out.Data = copyMap(g.Data)
	}
}

// DeepCopy returns a copy that shares nothing with g.
func (g *GenericMap) DeepCopy() *GenericMap {
	if g == nil {
		return nil
	}
	out := &GenericMap{}
	g.DeepCopyInto(out)
	return out
}

func copyMap(in map[string]any) map[string]any {
	out := make(map[string]any, len(in))
	for key, value := range in {
		out[key] = copyValue(value)
	}
	return out
}

// copyValue also takes the plain ints that a YAML decoder or Go code puts into
// values and on which runtime.DeepCopyJSONValue panics.
func copyValue(value any) any {
	switch v := value.(type) {
	case map[string]any:
		return copyMap(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = copyValue(v[i])
		}
		return out
	case string, bool, int, int32, int64, uint64, float32, float64, json.Number, nil:
		return v
	default:
		return runtime.DeepCopyJSONValue(v)
	}
}

// MergeValues returns base with over on top: objects are merged key by key, all
// else is replaced, a null included. It changes neither.
func MergeValues(base, over map[string]any) map[string]any {
	if len(over) == 0 {
		return base
	}
	out := make(map[string]any, len(base)+len(over))
	maps.Copy(out, base)
	for key, value := range over {
		below, wasMap := out[key].(map[string]any)
		above, isMap := value.(map[string]any)
		if wasMap && isMap {
			value = MergeValues(below, above)
		}
		out[key] = value
	}
	return out
}
