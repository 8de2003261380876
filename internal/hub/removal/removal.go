// Package removal tells a deliberate deletion from a loss. An object that goes
// because its namespace or its whole kind is being deleted proves nothing
// about what its owner wants on the clusters.
package removal

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// Deliberate tells whether obj, which has a deletion timestamp, was deleted by
// itself: its namespace and its kind, given by the plural resource name, are
// there to stay. Both are read live.
func Deliberate(ctx context.Context, live client.Reader, obj client.Object, resource string) (bool, error) {
	stays, err := KindStays(ctx, live, resource)
	if err != nil || !stays {
		return false, err
	}
	return NamespaceStays(ctx, live, obj.GetNamespace())
}

// KindStays tells whether a kind of the API, given by its plural resource name,
// exists and is not being deleted as a whole.
func KindStays(ctx context.Context, live client.Reader, resource string) (bool, error) {
	crd := metadataOf(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	found, err := find(ctx, live, crd, resource+"."+fleet.Group)
	return Stays(found), err
}

// NamespaceStays tells whether a namespace exists and is not being deleted.
func NamespaceStays(ctx context.Context, live client.Reader, name string) (bool, error) {
	namespace, err := Namespace(ctx, live, name)
	return Stays(namespace), err
}

// Namespace returns the metadata of a namespace; nil where there is none.
func Namespace(ctx context.Context, live client.Reader, name string) (*metav1.PartialObjectMetadata, error) {
	return find(ctx, live, metadataOf(corev1.SchemeGroupVersion.WithKind("Namespace")), name)
}

// Stays tells whether an object that may be nil exists and is not being deleted.
func Stays(obj *metav1.PartialObjectMetadata) bool {
	return obj != nil && obj.DeletionTimestamp.IsZero()
}

func find(ctx context.Context, live client.Reader, obj *metav1.PartialObjectMetadata, name string) (*metav1.PartialObjectMetadata, error) {
	err := live.Get(ctx, client.ObjectKey{Name: name}, obj)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // that there is none is an answer
	}
	if err != nil {
		return nil, fmt.Errorf("look whether %s %s is being deleted: %w", obj.Kind, name, err)
	}
	return obj, nil
}

func metadataOf(gvk schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(gvk)
	return obj
}
