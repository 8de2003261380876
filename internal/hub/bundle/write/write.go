// Package write makes Bundles of what a GitRepo or HelmOp packs: it stores the
// source and the values of a bundle, then the Bundle that names them, and
// deletes values that nothing names any more.
package write

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/flotilla-sh/flotilla/internal/content/kube"
	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/hub/bundle/sources"
	"github.com/flotilla-sh/flotilla/internal/names"
	"github.com/flotilla-sh/flotilla/internal/source"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// What only somebody else can change is looked at again after a while, and by up
// to so much more at random.
const (
	again  = time.Minute
	jitter = 0.5
)

// Writer writes Bundles.
type Writer struct {
	Client client.Client
	// Live reads what a deletion depends on, past all caches.
	Live    client.Reader
	Store   *kube.Store
	Sources *sources.Sources

	wanted wanted
}

// Owner is the object that Bundles come from.
type Owner struct {
	Kind, Namespace, Name string
	// Label names the owner on its Bundles.
	Label string
}

func (o Owner) owns(b *fleet.Bundle) bool { return b.Labels[o.Label] == o.Name }

// Have is a Bundle as it is.
type Have struct {
	Bundle  *fleet.Bundle
	sources *sources.Sources
}

// Files are those that are stored for the Bundle.
func (h *Have) Files(ctx context.Context) ([]source.File, error) {
	stored, err := h.sources.Of(ctx, h.Bundle)
	return stored.Files, err
}

// Have returns the Bundle of an owner, or nil where it has none of this name.
func (w *Writer) Have(ctx context.Context, owner Owner, name string) (*Have, error) {
	b := &fleet.Bundle{}
	err := w.Client.Get(ctx, client.ObjectKey{Namespace: owner.Namespace, Name: name}, b)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read the bundle %s: %w", name, err)
	}
	if err != nil || !owner.owns(b) || b.Spec.ContentsID == "" {
		return nil, nil //nolint:nilnil // most bundles are new once
	}
	return &Have{Bundle: b, sources: w.Sources}, nil
}

// Write makes a Bundle be as wanted, with these files; it is not written where
// it is so already. What the writer itself decides need not be in it. Different
// Bundles may be written at one time.
func (w *Writer) Write(ctx context.Context, owner Owner, want *fleet.Bundle, files []source.File) error {
	return refused(w.write(ctx, owner, want, files))
}

func (w *Writer) write(ctx context.Context, owner Owner, want *fleet.Bundle, files []source.File) error {
	values, err := finish(owner, want)
	if err != nil {
		return err
	}
	packed, err := w.Sources.Pack(files)
	if err != nil {
		return err
	}
	want.Spec.ContentsID = packed.ID()
	w.wanted.note(want)
	have := &fleet.Bundle{}
	err = w.Client.Get(ctx, client.ObjectKeyFromObject(want), have)
	if err == nil && upToDate(have, want) {
		stored, err := w.Sources.Has(ctx, packed, want.Namespace)
		if err != nil || stored {
			return err
		}
	}
	if err := w.Sources.Put(ctx, packed, want.Namespace); err != nil {
		return err
	}
	if values != nil {
		if err := w.Store.Keep(ctx, values); err != nil {
			return fmt.Errorf("store the Helm values of bundle %s: %w", want.Name, err)
		}
	}
	switch {
	case apierrors.IsNotFound(err):
		return w.Client.Create(ctx, want)
	case err != nil:
		return err
	}
	if err := w.update(ctx, owner, have, want); err != nil {
		return err
	}
	return w.dropValues(ctx, have, want)
}

// finish adds what all Bundles have, and takes the values out.
func finish(owner Owner, want *fleet.Bundle) (*corev1.Secret, error) {
	if want.Labels == nil {
		want.Labels = map[string]string{}
	}
	want.Labels[owner.Label] = owner.Name
	controllerutil.AddFinalizer(want, fleet.Finalizer)
	if want.Spec.TargetCustomizationMode == "" {
		// What the API server defaults to, so that the two compare equal.
		want.Spec.TargetCustomizationMode = fleet.FirstMatch
	}
	values, err := takeValues(want)
	if err != nil {
		return nil, fault.Stall("InvalidValues", err)
	}
	return values, nil
}

// Registry is the Secret with the registry for content that has the usual name,
// where it exists: that of Bundles that name none. It is read once for all
// Bundles of an owner.
func (w *Writer) Registry(ctx context.Context, namespace string) (string, error) {
	meta := &metav1.PartialObjectMetadata{}
	meta.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	err := w.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: fleet.OCIStorageSecret}, meta)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("look for the Secret %s with a registry for content: %w", fleet.OCIStorageSecret, err)
	}
	return meta.Name, nil
}

// upToDate compares everything but the commit: one that changes nothing else
// is no reason to write.
func upToDate(have, want *fleet.Bundle) bool {
	a, b := maps.Clone(have.Labels), maps.Clone(want.Labels)
	delete(a, fleet.CommitLabel)
	delete(b, fleet.CommitLabel)
	return maps.Equal(a, b) && equality.Semantic.DeepEqual(have.Spec, want.Spec) &&
		controllerutil.ContainsFinalizer(have, fleet.Finalizer)
}

func (w *Writer) update(ctx context.Context, owner Owner, have, want *fleet.Bundle) error {
	if !owner.owns(have) {
		// The other one may go without a word to this owner.
		return fault.Wait(wait.Jitter(again, jitter), "NameCollision", fmt.Errorf(
			"there is a bundle %s/%s already, which is not of this %s (its %s is %q): rename one of the two, a directory's by \"name\" in fleet.yaml",
			have.Namespace, have.Name, owner.Kind, owner.Label, have.Labels[owner.Label]))
	}
	next := have.DeepCopy()
	next.Labels, next.Spec = want.Labels, want.Spec
	controllerutil.AddFinalizer(next, fleet.Finalizer)
	return w.Client.Patch(ctx, next, client.MergeFrom(have))
}

// dropValues deletes the Secret with the values that a Bundle had. What is left
// of them all the same, and of Bundles that are gone, is swept with content.
func (w *Writer) dropValues(ctx context.Context, had, has *fleet.Bundle) error {
	if had.Spec.ValuesHash == "" || had.Spec.ValuesHash == has.Spec.ValuesHash {
		return nil
	}
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = had.Namespace, names.ValuesSecret(had.Name, had.Spec.ValuesHash)
	return client.IgnoreNotFound(w.Client.Delete(ctx, secret))
}

// But lists the Bundles of an owner but those to keep. It is read past the
// cache: a Bundle that was just made must not be missed.
func (w *Writer) But(ctx context.Context, owner Owner, keep map[string]bool) ([]fleet.Bundle, error) {
	list := &fleet.BundleList{}
	err := w.Live.List(ctx, list, client.InNamespace(owner.Namespace), client.MatchingLabels{owner.Label: owner.Name})
	return slices.DeleteFunc(list.Items, func(b fleet.Bundle) bool { return keep[b.Name] }), err
}

// Delete deletes Bundles that are not going yet.
func (w *Writer) Delete(ctx context.Context, bundles []fleet.Bundle) error {
	for i := range bundles {
		if !bundles[i].DeletionTimestamp.IsZero() {
			continue
		}
		if err := w.Client.Delete(ctx, &bundles[i]); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete bundle %s: %w", bundles[i].Name, err)
		}
	}
	return nil
}
