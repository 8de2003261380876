package manifest

import (
	"fmt"
	"math"

	"github.com/flotilla-sh/flotilla/pkg/fleetyaml"
)

// toJSON turns what the YAML library decodes into what JSON knows: keys become
// strings, as sigs.k8s.io/yaml (and so kubectl and Helm) makes them.
func toJSON(value any) (any, error) {
	switch v := value.(type) {
	case map[any]any:
		return toJSONMap(v)
	case []any:
		for i := range v {
			item, err := toJSON(v[i])
			if err != nil {
				return nil, err
			}
			v[i] = item
		}
		return v, nil
	case int:
		return int64(v), nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("%v is no number that JSON can hold", v)
		}
		return v, nil
	default:
		return v, nil
	}
}

func toJSONMap(in map[any]any) (map[string]any, error) {
	out := make(map[string]any, len(in))
	for key, value := range in {
		name, err := fleetyaml.KeyText(key)
		if err != nil {
			return nil, err
		}
		if out[name], err = toJSON(value); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// dropNulls removes null values from maps: a null that is applied claims a
// field and removes what others have put there.
func dropNulls(value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, item := range v {
			if item == nil {
				delete(v, key)
				continue
			}
			dropNulls(item)
		}
	case []any:
		for _, item := range v {
			dropNulls(item)
		}
	}
}
