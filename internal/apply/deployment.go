package apply

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Owner is the bundle that objects are applied for.
type Owner struct {
	// Bundle is "namespace/name" of the bundle on the hub.
	Bundle string
	// Hub is the identity of the hub; empty where it was not known when the
	// objects were applied.
	Hub string
	// Label is the value of the label that all its objects carry.
	Label string
	// Manager is its field manager.
	Manager string
}

// Options say how a bundle is applied.
type Options struct {
	// Namespace forces all objects into one namespace.
	Namespace string
	// DefaultNamespace is for namespaced objects that name none.
	DefaultNamespace string
	// CreateNamespace makes namespaces that are missing.
	CreateNamespace bool
	// TakeOwnership takes over objects that exist and belong to nobody.
	TakeOwnership bool
	// Recreate replaces objects whose change the API server does not allow.
	Recreate bool
	// Secret is true where any value of the objects may be a secret one, so
	// that no message may repeat it.
	Secret bool
	// Reapply applies unchanged objects too.
	Reapply bool
	// DeleteCRDs and DeleteNamespaces let these go when the bundle is removed;
	// they are held otherwise, as they take everything in them along.
	DeleteCRDs, DeleteNamespaces bool
	// AgentNamespace is never deleted.
	AgentNamespace string
	// KeepAll keeps every object when the bundle is removed.
	KeepAll bool
}

// Live is what is known of a live object without reading it.
type Live struct {
	// Changed is true where it is not as it was applied.
	Changed bool
	// ScaledBy wrote spec.replicas last, through the scale subresource: it is
	// that program's where it is an autoscaler.
	ScaledBy string
}

// Deployment is the input of one apply.
type Deployment struct {
	Owner   Owner
	Options Options
	// Objects are what the bundle should have; the engine changes them.
	Objects []*unstructured.Unstructured
	// Previous is what it has.
	Previous Inventory
	// Held left it earlier and were kept: their namespaces stay as well.
	Held []Ref
	// Dress is what it sets on its namespace, Dressed the namespaces on which
	// it has set something.
	Dress   Dress
	Dressed []Dressed
	// Live returns what is known of an object; nil knows nothing.
	Live func(Ref) Live
	// Abandoned tells whether a bundle is on this cluster and does not have,
	// and has not begun to apply, an object that bears its mark; nil knows of
	// none.
	Abandoned func(bundle string, ref Ref) bool
	// Tenant returns another bundle that has objects in a namespace, or
	// nothing.
	Tenant func(namespace string) string
	// Undecided is why it is not known yet whether another bundle wants what
	// leaves this one: nothing is deleted before it is.
	Undecided error
}

// abandoned asks Abandoned where there is one.
func (d *Deployment) abandoned(bundle string, ref Ref) bool {
	return bundle != "" && d.Abandoned != nil && d.Abandoned(bundle, ref)
}

// tenant asks Tenant where there is one.
func (d *Deployment) tenant(namespace string) string {
	if d.Tenant == nil {
		return ""
	}
	return d.Tenant(namespace)
}

// live asks Live where there is one.
func (d *Deployment) live(ref Ref) Live {
	if d.Live == nil {
		return Live{}
	}
	return d.Live(ref)
}

// Action is what was done to an object.
type Action string

const (
	// Created, Changed, Deleted: it was written.
	Created Action = "created"
	Changed Action = "changed"
	Deleted Action = "deleted"
	// Unchanged: it was as wanted, and nothing was written.
	Unchanged Action = "unchanged"
)

// Change is what was done to one object.
type Change struct {
	Ref    Ref
	Action Action
}

// Failure is why one object is not as wanted.
type Failure struct {
	Ref Ref
	Err error
}

// Error names the object and says why.
func (f Failure) Error() string { return f.Ref.String() + ": " + f.Err.Error() }

// Unwrap returns the cause.
func (f Failure) Unwrap() error { return f.Err }

// Result is what an apply or a removal has done. An object that failed has not
// stopped the others.
type Result struct {
	// Inventory is what the bundle has now, in apply order, with what could
	// not be deleted yet.
	Inventory Inventory
	// Dressed are the namespaces on which it has set something.
	Dressed []Dressed
	// Changes lists what was written and what was left as it was.
	Changes []Change
	// Failures lists what is not as wanted, sorted.
	Failures []Failure
	// Held lists objects that left the bundle and were kept.
	Held []Ref
}
