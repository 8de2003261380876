// Package gc deletes stored content that nothing names any more. It is mark and
// sweep: what no deployment and no bundle leads to is first marked with the
// time, and deleted by a later sweep if it still is unused after a grace time.
// A put of a marked payload takes the mark off, and the delete is conditional
// on the version that was judged, so the two cannot cross.
package gc

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flotilla-sh/flotilla/internal/content"
	"github.com/flotilla-sh/flotilla/internal/content/kube"
	"github.com/flotilla-sh/flotilla/internal/hub/registries"
	"github.com/flotilla-sh/flotilla/internal/names"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

const (
	// Interval is the time between sweeps, give or take a tenth.
	Interval = 10 * time.Minute
	// Grace is how long unused content is kept.
	Grace = time.Hour
)

// Collector sweeps.
type Collector struct {
	// Client reads deployments and bundles from the cache.
	Client client.Client
	// Live lists content past the cache, metadata only, and deletes it.
	Live  client.Client
	Store *kube.Store
	// Registries are swept too; nil for none.
	Registries *registries.Registries
	Clock      clock.WithTicker
}

// Start sweeps until ctx ends.
func (c *Collector) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.Clock.After(Interval + rand.N(Interval/10)):
		}
		if err := c.Sweep(ctx); err != nil {
			log.FromContext(ctx).Error(err, "sweep of unused content")
		}
	}
}

// Sweep marks and deletes once. What cannot be marked or deleted stops nothing
// else.
func (c *Collector) Sweep(ctx context.Context) error {
	return errors.Join(c.sweepStore(ctx), c.sweepRegistries(ctx))
}

// mostErrors is how many objects are told of that could not be swept.
const mostErrors = 5

func (c *Collector) sweepStore(ctx context.Context) error {
	stored, err := c.stored(ctx)
	if err != nil {
		return err
	}
	c.Store.Stored(stored)
	used, err := c.used(ctx, stored)
	if err != nil {
		return err
	}
	var errs []error
	failed := 0
	for i := range stored {
		err := c.judge(ctx, &stored[i], used[stored[i].Name])
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			continue
		}
		if failed++; failed <= mostErrors {
			errs = append(errs, fmt.Errorf("%s %s/%s: %w", stored[i].Kind, stored[i].Namespace, stored[i].Name, err))
		}
	}
	if failed > mostErrors {
		errs = append(errs, fmt.Errorf("and %d more", failed-mostErrors))
	}
	return errors.Join(errs...)
}

func (c *Collector) sweepRegistries(ctx context.Context) error {
	if c.Registries == nil {
		return nil
	}
	list, err := c.deployments(ctx)
	if err != nil {
		return err
	}
	return c.Registries.Sweep(ctx, list.Items, Grace)
}

func (c *Collector) deployments(ctx context.Context) (*fleet.BundleDeploymentList, error) {
	list := &fleet.BundleDeploymentList{}
	if err := c.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list deployments: %w", err)
	}
	return list, nil
}

// stored lists the metadata of everything that holds content. It is read
// before the references: content is stored before a deployment names it.
func (c *Collector) stored(ctx context.Context) ([]metav1.PartialObjectMetadata, error) {
	ours := client.HasLabels{kube.ManagedLabel}
	open, err := c.list(ctx, corev1.SchemeGroupVersion.WithKind("ConfigMap"), client.InNamespace(fleet.ContentNamespace), ours)
	if err != nil {
		return nil, err
	}
	secrets, err := c.list(ctx, corev1.SchemeGroupVersion.WithKind("Secret"), ours)
	return append(open, secrets...), err
}

func (c *Collector) list(ctx context.Context, gvk schema.GroupVersionKind, opts ...client.ListOption) ([]metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err := c.Live.List(ctx, list, opts...); err != nil {
		return nil, fmt.Errorf("list %s metadata: %w", gvk.Kind, err)
	}
	for i := range list.Items {
		list.Items[i].SetGroupVersionKind(gvk)
	}
	return list.Items, nil
}

// used returns the names of all content that something leads to.
func (c *Collector) used(ctx context.Context, stored []metav1.PartialObjectMetadata) (map[string]bool, error) {
	deployments, err := c.deployments(ctx)
	if err != nil {
		return nil, err
	}
	bundles := &fleet.BundleList{}
	if err := c.Client.List(ctx, bundles, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list bundles: %w", err)
	}
	used := map[string]bool{}
	for i := range deployments.Items {
		ref := deployments.Items[i].Spec.Content
		switch {
		case ref == nil:
		case ref.Registry == "":
			used[ref.Name] = true
		default:
			used[kube.AwayName(ref.Name)] = true
		}
	}
	for i := range bundles.Items {
		b := &bundles.Items[i]
		used[b.Spec.ContentsID] = true
		if b.Spec.ValuesHash != "" {
			used[names.ValuesSecret(b.Name, b.Spec.ValuesHash)] = true
		}
	}
	led := map[string]bool{}
	for i := range stored {
		if !used[stored[i].Name] {
			continue
		}
		for _, list := range []string{kube.ChunksAnnotation, content.ParcelsAnnotation} {
			for name := range strings.SplitSeq(stored[i].Annotations[list], ",") {
				led[name] = true
			}
		}
	}
	maps.Copy(used, led)
	return used, nil
}

func (c *Collector) judge(ctx context.Context, obj *metav1.PartialObjectMetadata, used bool) error {
	marked := obj.Annotations[kube.UnusedAnnotation]
	switch {
	case used && marked != "":
		return c.mark(ctx, obj, nil)
	case used:
		return nil
	case marked == "":
		return c.mark(ctx, obj, ptr.To(c.Clock.Now().UTC().Format(time.RFC3339)))
	}
	since, err := time.Parse(time.RFC3339, marked)
	if err == nil && c.Clock.Since(since) < Grace {
		return nil
	}
	return c.delete(ctx, obj)
}

// mark sets or removes the mark of an object.
func (c *Collector) mark(ctx context.Context, obj *metav1.PartialObjectMetadata, since *string) error {
	// After the patch: a put that still found no mark does not look again.
	defer c.Store.Forget(obj.Name, obj.Namespace)
	value := "null"
	if since != nil {
		value = `"` + *since + `"`
	}
	patch := fmt.Sprintf(`{"metadata":{"resourceVersion":%q,"annotations":{%q:%s}}}`,
		obj.ResourceVersion, kube.UnusedAnnotation, value)
	err := c.Live.Patch(ctx, obj, client.RawPatch("application/merge-patch+json", []byte(patch)))
	return ignoreMoved(err)
}

func (c *Collector) delete(ctx context.Context, obj *metav1.PartialObjectMetadata) error {
	c.Store.Forget(obj.Name, obj.Namespace)
	err := c.Live.Delete(ctx, obj, client.Preconditions{UID: &obj.UID, ResourceVersion: &obj.ResourceVersion})
	if err == nil {
		c.Store.Deleted(obj.Name, obj.Namespace)
	}
	return ignoreMoved(err)
}

// ignoreMoved drops the errors of an object that somebody else touched: the
// next sweep judges it again.
func ignoreMoved(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
