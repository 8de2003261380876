// Package lean is a client whose writes are answered with metadata alone: an
// API server need not encode the whole object for each answer, nor the hub
// decode it.
package lean

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// metadataOnly asks for the metadata alone in the answer to a write.
const metadataOnly = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"

// Client is a client.Client. What Create and Patch return in an object is its
// new metadata; the rest of it stays as it was passed in.
type Client struct {
	client.Client
	config *rest.Config
	http   *http.Client
	codecs serializer.CodecFactory
	params runtime.ParameterCodec
	// rests are the connections by kind.
	rests sync.Map
}

// New returns a lean client; it has the signature that a manager asks for.
func New(config *rest.Config, options client.Options) (client.Client, error) {
	if options.HTTPClient == nil {
		httpClient, err := rest.HTTPClientFor(config)
		if err != nil {
			return nil, fmt.Errorf("connect to the API server: %w", err)
		}
		options.HTTPClient = httpClient
	}
	full, err := client.New(config, options)
	if err != nil {
		return nil, err
	}
	scheme := full.Scheme()
	return &Client{
		Client: full, config: config, http: options.HTTPClient,
		codecs: serializer.NewCodecFactory(scheme), params: runtime.NewParameterCodec(scheme),
	}, nil
}

// typed returns the kind of an object that is no metadata already; what is
// without a type goes its usual way.
func (c *Client) typed(obj client.Object) (schema.GroupVersionKind, bool) {
	switch obj.(type) {
	case *metav1.PartialObjectMetadata, runtime.Unstructured:
		return schema.GroupVersionKind{}, false
	}
	gvk, err := c.GroupVersionKindFor(obj)
	return gvk, err == nil
}

// Create creates obj.
func (c *Client) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	gvk, ok := c.typed(obj)
	if !ok {
		return c.Client.Create(ctx, obj, opts...)
	}
	mapping, err := c.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return err
	}
	posts, err := c.rest(gvk)
	if err != nil {
		return err
	}
	o := (&client.CreateOptions{}).ApplyOptions(opts).AsCreateOptions()
	answer := posts.Post().
		NamespaceIfScoped(obj.GetNamespace(), mapping.Scope.Name() == meta.RESTScopeNameNamespace).
		Resource(mapping.Resource.Resource).
		VersionedParams(o, c.params).
		SetHeader("Accept", metadataOnly).Body(obj).Do(ctx)
	// Raw alone would not tell what the API server says of a refusal.
	if err := answer.Error(); err != nil {
		return err
	}
	raw, err := answer.Raw()
	if err != nil {
		return err
	}
	made := &metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(raw, made); err != nil {
		return fmt.Errorf("the API server's answer is no object: %w", err)
	}
	adopt(obj, made)
	return nil
}

// rest returns the connection for a kind.
func (c *Client) rest(gvk schema.GroupVersionKind) (rest.Interface, error) {
	if known, ok := c.rests.Load(gvk); ok {
		return known.(rest.Interface), nil
	}
	made, err := apiutil.RESTClientForGVK(gvk, false, false, c.config, c.codecs, c.http)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	c.rests.Store(gvk, made)
	return made, nil
}

// Patch patches obj.
func (c *Client) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	gvk, ok := c.typed(obj)
	if !ok {
		return c.Client.Patch(ctx, obj, patch, opts...)
	}
	data, err := patch.Data(obj)
	if err != nil {
		return fmt.Errorf("compare %s %s: %w", gvk.Kind, client.ObjectKeyFromObject(obj), err)
	}
	// A client asks for metadata alone where it is given no more.
	made := &metav1.PartialObjectMetadata{}
	made.SetGroupVersionKind(gvk)
	made.Namespace, made.Name = obj.GetNamespace(), obj.GetName()
	if err := c.Client.Patch(ctx, made, client.RawPatch(patch.Type(), data), opts...); err != nil {
		return err
	}
	adopt(obj, made)
	return nil
}

// adopt takes over what a write has made of the metadata that a caller builds
// the next write on.
func adopt(obj client.Object, made *metav1.PartialObjectMetadata) {
	obj.SetName(made.Name)
	obj.SetUID(made.UID)
	obj.SetResourceVersion(made.ResourceVersion)
	obj.SetGeneration(made.Generation)
	obj.SetCreationTimestamp(made.CreationTimestamp)
	obj.SetDeletionTimestamp(made.DeletionTimestamp)
	obj.SetFinalizers(made.Finalizers)
	obj.SetLabels(made.Labels)
	obj.SetAnnotations(made.Annotations)
}
