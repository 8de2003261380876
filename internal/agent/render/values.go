package render

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-sh/flotilla/internal/apply"
	"github.com/flotilla-sh/flotilla/internal/digest"
	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/render"
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
	// Digest names what was read on the cluster; it is empty where there is
	// nothing.
	Digest string
	// Secret is true where some came from a Secret.
	Secret bool

	parts []part
}

// part is what one place holds.
type part struct {
	place
	data map[string]any
	// copied is true where the hub sends a copy of the object with the bundle:
	// it may not be on the cluster yet.
	copied bool
}

// From says where values are read.
type From struct {
	Refs []fleet.ValuesFrom
	// Namespace is the release's.
	Namespace string
	// Copies are the objects that come with the bundle.
	Copies []fleet.DownstreamResource
}

// places are the places that are named, in their order. Of one entry the Secret
// wins over the ConfigMap, as in Fleet.
func (f From) places() []part {
	var out []part
	add := func(kind, namespace, name, key string) {
		at := place{kind, cmp.Or(namespace, f.Namespace), name, cmp.Or(key, valuesKey)}
		copied := at.namespace == f.Namespace && slices.ContainsFunc(f.Copies, func(r fleet.DownstreamResource) bool {
			return strings.EqualFold(r.Kind, kind) && r.Name == name
		})
		out = append(out, part{place: at, copied: copied})
	}
	for _, from := range f.Refs {
		if r := from.ConfigMapKeyRef; r != nil {
			add("ConfigMap", r.Namespace, r.Name, r.Key)
		}
		if r := from.SecretKeyRef; r != nil {
			add("Secret", r.Namespace, r.Name, r.Key)
		}
	}
	return out
}

// ReadValues reads through c what is not copied from the hub.
func ReadValues(ctx context.Context, c *apply.Client, from From) (Values, error) {
	v := Values{parts: from.places()}
	var read map[string]any
	for i := range v.parts {
		p := &v.parts[i]
		v.Secret = v.Secret || p.kind == "Secret"
		if p.copied {
			continue
		}
		obj, err := c.Get(ctx, p.ref())
		if err == nil {
			p.data, err = valuesIn(obj, p.place)
		}
		if err != nil {
			return Values{}, p.unread(err)
		}
		read = fleet.MergeValues(read, p.data)
	}
	if read == nil {
		return v, nil
	}
	var err error
	v.Digest, err = digest.OfJSON(read)
	return v, err
}

// merged returns the values, later ones over earlier ones. What is copied is
// read from the copies.
func (v Values) merged(copies []render.Object) (map[string]any, error) {
	var out map[string]any
	for _, p := range v.parts {
		if p.copied {
			obj, ok := copyOf(copies, p.kind, p.namespace, p.name)
			if !ok {
				return nil, p.unread(apierrors.NewNotFound(schema.GroupResource{}, p.name))
			}
			var err error
			if p.data, err = valuesIn(obj, p.place); err != nil {
				return nil, err
			}
		}
		out = fleet.MergeValues(out, p.data)
	}
	return out, nil
}

// copyOf finds an object among the copies that come with a bundle.
func copyOf(copies []render.Object, kind, namespace, name string) (*unstructured.Unstructured, bool) {
	for _, o := range copies {
		if o.Kind != kind || o.Namespace != namespace || o.Name != name {
			continue
		}
		obj := &unstructured.Unstructured{}
		return obj, obj.UnmarshalJSON(o.JSON) == nil
	}
	return nil, false
}

// place is a key of an object that holds values.
type place struct{ kind, namespace, name, key string }

func (p place) ref() apply.Ref {
	return apply.Ref{Version: "v1", Kind: p.kind, Namespace: p.namespace, Name: p.name}
}

func (p place) String() string {
	return fmt.Sprintf("helm.valuesFrom: key %s of the %s %s/%s on this cluster", p.key, p.kind, p.namespace, p.name)
}

// unread says why values could not be read.
func (p place) unread(err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return fault.Wait(missingRetry, ReasonValuesMissing, fmt.Errorf("%s: there is no such %s: create it", p, p.kind))
	case apierrors.IsForbidden(err):
		return fault.Wait(missingRetry, ReasonValuesMissing, fmt.Errorf("%s: it may not be read: %w", p, err))
	case fault.KindOf(err) != fault.Transient:
		return err
	}
	return fmt.Errorf("%s: %w", p, err)
}

// valuesIn reads the values that an object holds.
func valuesIn(obj *unstructured.Unstructured, p place) (map[string]any, error) {
	text, ok, err := textOf(obj, p)
	if err != nil || !ok {
		return nil, fault.Wait(missingRetry, ReasonValuesMissing, fmt.Errorf("%s: there is no such key: add it, or correct helm.valuesFrom", p))
	}
	var values map[string]any
	if err := yaml.Unmarshal(text, &values); err != nil {
		// The parser's message may quote the text, which may be secret.
		return nil, fault.Wait(missingRetry, ReasonValuesInvalid, fmt.Errorf("%s: it is no YAML map of values: correct it", p))
	}
	return values, nil
}

func textOf(obj *unstructured.Unstructured, p place) ([]byte, bool, error) {
	text, ok, err := unstructured.NestedString(obj.Object, "data", p.key)
	if !ok || err != nil || p.kind != "Secret" {
		return []byte(text), ok, err
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	return raw, true, err
}
