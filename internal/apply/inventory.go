package apply

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Ref names an object on a cluster.
type Ref struct {
	Group     string `json:"g,omitempty"`
	Version   string `json:"v"`
	Kind      string `json:"k"`
	Namespace string `json:"ns,omitempty"`
	Name      string `json:"n"`
}

// RefOf returns the name of obj.
func RefOf(obj *unstructured.Unstructured) Ref {
	gvk := obj.GroupVersionKind()
	return Ref{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// GVK returns the kind of the object.
func (r Ref) GVK() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
}

// APIVersion returns "v1" or "apps/v1".
func (r Ref) APIVersion() string {
	return schema.GroupVersion{Group: r.Group, Version: r.Version}.String()
}

// String names the object for people: "Deployment shop/web".
func (r Ref) String() string {
	if r.Namespace == "" {
		return r.Kind + " " + r.Name
	}
	return r.Kind + " " + r.Namespace + "/" + r.Name
}

// Identity is r without the version: an object is the same whichever version
// of its kind names it.
func (r Ref) Identity() Ref {
	r.Version = ""
	return r
}

// Compare orders names by namespace, kind and name.
func (r Ref) Compare(o Ref) int {
	return cmp.Or(cmp.Compare(r.Namespace, o.Namespace), cmp.Compare(r.Kind, o.Kind),
		cmp.Compare(r.Name, o.Name), cmp.Compare(r.Group, o.Group))
}

// Entry is one object that a bundle has on the cluster. An entry without a UID
// was written down before the object was applied for the first time.
type Entry struct {
	Ref
	// UID is the object that was applied.
	UID string `json:"uid,omitempty"`
	// Digest is of the object as it was wanted.
	Digest string `json:"d,omitempty"`
	// Fields is the digest of the field set that the API server said is ours
	// after the apply. Others can only make that set smaller.
	Fields string `json:"f,omitempty"`
	// Generation is the object's after the apply; 0 for kinds without one.
	Generation int64 `json:"gen,omitempty"`
	// Version is the resource version that our last write made.
	ResourceVersion string `json:"rv,omitempty"`
	// Health is true where the object has a state to wait for.
	Health bool `json:"h,omitempty"`
	// Found is true where the object was there before the bundle, as far as is
	// known.
	Found bool `json:"fd,omitempty"`
}

// Inventory is what a bundle has on the cluster, in apply order.
type Inventory []Entry

// index maps identities to entries.
func (inv Inventory) index() map[Ref]Entry {
	out := make(map[Ref]Entry, len(inv))
	for _, e := range inv {
		out[e.Identity()] = e
	}
	return out
}

// missingFrom returns the entries that next has not, in their order.
func (inv Inventory) missingFrom(next Inventory) []Entry {
	have := next.index()
	return slices.DeleteFunc(slices.Clone(inv), func(e Entry) bool {
		_, ok := have[e.Identity()]
		return ok
	})
}
