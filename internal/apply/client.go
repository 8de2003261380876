package apply

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
)

// Client reaches the objects of one cluster. Writes ask for metadata only in
// the answer, which is all that the engine wants to know.
type Client struct {
	// Kinds finds the paths of kinds.
	Kinds *Kinds
	// Objects reads whole objects.
	Objects dynamic.Interface
	// Metadata writes, and reads metadata.
	Metadata metadata.Interface
}

// Get reads the whole live object, in a version that its cluster serves.
func (c *Client) Get(ctx context.Context, ref Ref) (live *unstructured.Unstructured, err error) {
	err = c.existing(ctx, ref, func(kind Kind) (err error) {
		live, err = c.Objects.Resource(kind.Resource).Namespace(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
		return err
	})
	return live, err
}

// Head reads the metadata of the live object.
func (c *Client) Head(ctx context.Context, ref Ref) (head *metav1.PartialObjectMetadata, err error) {
	err = c.existing(ctx, ref, func(kind Kind) error {
		at, err := c.at(kind, ref)
		if err != nil {
			return err
		}
		head, err = at.Get(ctx, ref.Name, metav1.GetOptions{})
		return err
	})
	return head, err
}

// existing does something with an object that may be there, in whichever
// version its cluster serves. That a version which was known is not served any
// more says nothing about the object.
func (c *Client) existing(ctx context.Context, ref Ref, do func(Kind) error) error {
	var err error
	for range 2 {
		kind, unknown := c.Kinds.Serving(ctx, ref.GVK())
		if unknown != nil {
			return unknown
		}
		if err = do(kind); !kindGone(err) {
			return err
		}
		c.Kinds.Forget(kind.Resource.GroupVersion().WithKind(ref.Kind))
	}
	// The error of the server is not passed on, as it would count as "there is
	// no such object".
	return fmt.Errorf("this cluster lists %s in %s and does not serve it: %s", ref.Kind, ref.Group, err.Error())
}

// DryRun returns what the live object would be after applying desired.
func (c *Client) DryRun(ctx context.Context, desired *unstructured.Unstructured, manager string) (*unstructured.Unstructured, error) {
	ref := RefOf(desired)
	kind, err := c.Kinds.Lookup(ctx, ref.GVK())
	if err != nil {
		return nil, err
	}
	return c.Objects.Resource(kind.Resource).Namespace(ref.Namespace).Apply(ctx, ref.Name, desired,
		metav1.ApplyOptions{FieldManager: manager, Force: true, DryRun: []string{metav1.DryRunAll}})
}

// patch sends a server-side apply, or only tries it. Without force it takes
// nothing from other managers.
func (c *Client) patch(ctx context.Context, ref Ref, manager string, body []byte, force bool, try ...string) (*metav1.PartialObjectMetadata, error) {
	kind, err := c.Kinds.Lookup(ctx, ref.GVK())
	if err != nil {
		return nil, err
	}
	at, err := c.at(kind, ref)
	if err != nil {
		return nil, err
	}
	return at.Patch(ctx, ref.Name, types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: manager, Force: &force, DryRun: try})
}

// acceptsNew tells whether the cluster would take an object if it were a new
// one, of another name.
func (c *Client) acceptsNew(ctx context.Context, obj *unstructured.Unstructured) bool {
	kind, err := c.Kinds.Lookup(ctx, obj.GroupVersionKind())
	if err != nil {
		return false
	}
	obj = obj.DeepCopy()
	obj.SetGenerateName(obj.GetName() + "-")
	obj.SetName("")
	_, err = c.Objects.Resource(kind.Resource).Namespace(obj.GetNamespace()).
		Create(ctx, obj, metav1.CreateOptions{FieldManager: agentManager, DryRun: []string{metav1.DryRunAll}})
	return err == nil
}

// edit sends a merge or JSON patch.
func (c *Client) edit(ctx context.Context, ref Ref, kind types.PatchType, body []byte) error {
	return c.existing(ctx, ref, func(served Kind) error {
		at, err := c.at(served, ref)
		if err != nil {
			return err
		}
		_, err = at.Patch(ctx, ref.Name, kind, body, metav1.PatchOptions{FieldManager: agentManager})
		return err
	})
}

// delete deletes the object if it still has this UID.
func (c *Client) delete(ctx context.Context, ref Ref, uid types.UID) error {
	background := metav1.DeletePropagationBackground
	return c.existing(ctx, ref, func(kind Kind) error {
		at, err := c.at(kind, ref)
		if err != nil {
			return err
		}
		return at.Delete(ctx, ref.Name, metav1.DeleteOptions{
			PropagationPolicy: &background,
			Preconditions:     &metav1.Preconditions{UID: &uid},
		})
	})
}

// at is where the metadata of an object is, in the version of kind.
func (c *Client) at(kind Kind, ref Ref) (metadata.ResourceInterface, error) {
	if kind.Namespaced && ref.Namespace == "" {
		return nil, fmt.Errorf("%s has no namespace although its kind needs one", ref)
	}
	return c.Metadata.Resource(kind.Resource).Namespace(ref.Namespace), nil
}
