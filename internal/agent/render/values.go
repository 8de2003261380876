package render

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-sh/flotilla/internal/apply"
	"github.com/flotilla-sh/flotilla/internal/digest"
	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/target"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

const (
	// valuesKey is the key that holds values where none is named.
	valuesKey = "values.yaml"
	// missingRetry is when to look again for values that are not there.
	missingRetry = 15 * time.Second
)

// The reasons of errors about values on the cluster.
const (
	ReasonValuesMissing = "ValuesMissing"
	ReasonValuesInvalid = "ValuesInvalid"
)

// Values are what helm.valuesFrom names, as the cluster has it.
type Values struct {
	// Data are the values merged, later ones over earlier ones.
	Data map[string]any
	// Digest names them; it is empty where there are none.
	Digest string
	// Secret is true where some came from a Secret.
	Secret bool
}

// ReadValues reads what refs name, through c. namespace is the release's.
func ReadValues(ctx context.Context, c *apply.Client, refs []fleet.ValuesFrom, namespace string) (Values, error) {
	var v Values
	for _, from := range refs {
		// Of one entry the Secret wins over the ConfigMap, as in Fleet.
		if r := from.ConfigMapKeyRef; r != nil {
			if err := v.add(ctx, c, place{"ConfigMap", cmp.Or(r.Namespace, namespace), r.Name, cmp.Or(r.Key, valuesKey)}); err != nil {
				return Values{}, err
			}
		}
		if r := from.SecretKeyRef; r != nil {
			v.Secret = true
			if err := v.add(ctx, c, place{"Secret", cmp.Or(r.Namespace, namespace), r.Name, cmp.Or(r.Key, valuesKey)}); err != nil {
				return Values{}, err
			}
		}
	}
	if v.Data == nil {
		return v, nil
	}
	sum, err := digest.OfJSON(v.Data)
	v.Digest = sum
	return v, err
}

// place is a key of an object that holds values.
type place struct{ kind, namespace, name, key string }

func (p place) String() string {
	return fmt.Sprintf("helm.valuesFrom: key %s of the %s %s/%s on this cluster", p.key, p.kind, p.namespace, p.name)
}

func (v *Values) add(ctx context.Context, c *apply.Client, p place) error {
	obj, err := c.Get(ctx, apply.Ref{Version: "v1", Kind: p.kind, Namespace: p.namespace, Name: p.name})
	switch {
	case apierrors.IsNotFound(err):
		return fault.Wait(missingRetry, ReasonValuesMissing, fmt.Errorf("%s: there is no such %s: create it", p, p.kind))
	case apierrors.IsForbidden(err):
		return fault.Wait(missingRetry, ReasonValuesMissing, fmt.Errorf("%s: it may not be read: %w", p, err))
	case err != nil:
		return fmt.Errorf("%s: %w", p, err)
	}
	text, ok, err := textOf(obj, p)
	if err != nil || !ok {
		return fault.Wait(missingRetry, ReasonValuesMissing, fmt.Errorf("%s: there is no such key: add it, or correct helm.valuesFrom", p))
	}
	var values map[string]any
	if err := yaml.Unmarshal(text, &values); err != nil {
		// The parser's message may quote the text, which may be secret.
		return fault.Wait(missingRetry, ReasonValuesInvalid, fmt.Errorf("%s: it is no YAML map of values: correct it", p))
	}
	v.Data = target.MergeValues(v.Data, values)
	return nil
}

func textOf(obj *unstructured.Unstructured, p place) ([]byte, bool, error) {
	text, ok, err := unstructured.NestedString(obj.Object, "data", p.key)
	if !ok || err != nil || p.kind != "Secret" {
		return []byte(text), ok, err
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	return raw, true, err
}
