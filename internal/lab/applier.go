package lab

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
)

// fieldManager owns what the lab applies.
const fieldManager = "flotilla-lab"

var crds = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// applier applies objects of any kind to a cluster.
type applier struct {
	client dynamic.Interface
	mapper *restmapper.DeferredDiscoveryRESTMapper
}

func (c *cluster) applier() (*applier, error) {
	config, err := clientConfig(c.kubeconfig)
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	known, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	return &applier{client: client, mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(known))}, nil
}

// apply makes one object be as given, by server-side apply.
func (a *applier) apply(ctx context.Context, object *unstructured.Unstructured) error {
	kind := object.GroupVersionKind()
	mapping, err := a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	resource := dynamic.ResourceInterface(a.client.Resource(mapping.Resource))
	if mapping.Scope.Name() == "namespace" {
		namespace := object.GetNamespace()
		if namespace == "" {
			namespace = systemNamespace
		}
		resource = a.client.Resource(mapping.Resource).Namespace(namespace)
	}
	_, err = resource.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	if err != nil {
		return fmt.Errorf("%s %s: %w", kind.Kind, object.GetName(), err)
	}
	return nil
}

// established waits until the API server serves the CRDs among objects.
func (a *applier) established(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, name := range crdsAmong(objects) {
		err := poll(ctx, startLimit, func(ctx context.Context) error {
			live, err := a.client.Resource(crds).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			return crdEstablished(live)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func crdEstablished(crd *unstructured.Unstructured) error {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	for _, entry := range conditions {
		condition, _ := entry.(map[string]any)
		if condition["type"] == "Established" && condition["status"] == "True" {
			return nil
		}
	}
	return fmt.Errorf("CRD %s is not established", crd.GetName())
}
