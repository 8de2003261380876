package pack

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/flotilla-sh/flotilla/internal/bundle"
	"github.com/flotilla-sh/flotilla/internal/content"
	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/source/git"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// write makes the Bundles of a GitRepo be its drafts. The Bundle of a draft
// with an error stays as it is.
func (c *Controller) write(ctx context.Context, repo *fleet.GitRepo, commit string, drafts []bundle.Draft) error {
	for i := range drafts {
		draft := &drafts[i]
		if draft.Err != nil {
			continue
		}
		if err := c.writeBundle(ctx, repo, commit, draft); err != nil {
			if fault.KindOf(err) != fault.Stalled {
				return err
			}
			draft.Err = fmt.Errorf("bundle %s: %w", draft.Name, err)
		}
	}
	return nil
}

// prune deletes the Bundles of a GitRepo that no draft stands for. Before that
// the server is asked once more: a commit that a poll found under an earlier
// spec, or that was overtaken, says nothing about what is gone.
func (c *Controller) prune(ctx context.Context, repo *fleet.GitRepo, remote git.Remote, commit string, drafts []bundle.Draft) error {
	keep := map[string]bool{}
	for i := range drafts {
		keep[drafts[i].Name] = true
	}
	gone, err := c.bundlesBut(ctx, repo, keep)
	if err != nil || len(gone) == 0 {
		return err
	}
	newest, err := git.Resolve(ctx, remote)
	if err != nil {
		return fmt.Errorf("ask whether %s is the newest commit, before bundles are deleted: %w", commit, err)
	}
	if newest != commit {
		return fault.Wait(overtakenSoon, "Overtaken", fmt.Errorf("commit %s is not the newest any more; waiting for %s", commit, newest))
	}
	return c.deleteBundles(ctx, gone)
}

// writeBundle stores a draft's source and values, then the Bundle that names
// them, and only then deletes values that nothing names any more.
func (c *Controller) writeBundle(ctx context.Context, repo *fleet.GitRepo, commit string, draft *bundle.Draft) error {
	want, values, err := c.build(repo, commit, draft)
	if err != nil {
		return err
	}
	if want.Spec.OCIRegistrySecret, err = c.registry(ctx, repo, draft); err != nil {
		return err
	}
	source, err := content.EncodeFiles(c.Key, draft.Files)
	if err != nil {
		return err
	}
	want.Spec.ContentsID = source.Root.Name
	have := &fleet.Bundle{}
	err = c.Client.Get(ctx, client.ObjectKeyFromObject(want), have)
	if err == nil && upToDate(have, want) {
		stored, err := c.Store.Has(ctx, source.Root.Ref, repo.Namespace)
		if err != nil || stored {
			return err
		}
	}
	if err := c.Store.Put(ctx, source, repo.Namespace); err != nil {
		return err
	}
	if values != nil {
		if err := c.Client.Create(ctx, values); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("store the Helm values of bundle %s: %w", want.Name, err)
		}
	}
	switch {
	case apierrors.IsNotFound(err):
		err = c.Client.Create(ctx, want)
	case err == nil:
		err = c.update(ctx, repo, have, want)
	}
	if err != nil {
		return err
	}
	return c.sweepValues(ctx, want, values)
}

// registry is the Secret with the registry for a bundle's content: what the
// directory or the GitRepo names, or the one of the usual name where it exists.
func (c *Controller) registry(ctx context.Context, repo *fleet.GitRepo, draft *bundle.Draft) (string, error) {
	if name := cmp.Or(draft.Spec.OCIRegistrySecret, repo.Spec.OCIRegistrySecret); name != "" {
		return name, nil
	}
	meta := &metav1.PartialObjectMetadata{}
	meta.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	err := c.Client.Get(ctx, client.ObjectKey{Namespace: repo.Namespace, Name: fleet.OCIStorageSecret}, meta)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("look for the Secret %s with a registry for content: %w", fleet.OCIStorageSecret, err)
	}
	return meta.Name, nil
}

// build returns the Bundle for a draft, without its source, and the Secret
// with its values.
func (c *Controller) build(repo *fleet.GitRepo, commit string, draft *bundle.Draft) (*fleet.Bundle, *corev1.Secret, error) {
	labels := maps.Clone(draft.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[fleet.RepoLabel] = repo.Name
	labels[fleet.CommitLabel] = commit
	want := &fleet.Bundle{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: repo.Namespace, Name: draft.Name, Labels: labels,
			Finalizers: []string{fleet.Finalizer},
		},
		Spec: *draft.Spec.DeepCopy(),
	}
	if want.Spec.TargetCustomizationMode == "" {
		// What the API server defaults to, so that the two compare equal.
		want.Spec.TargetCustomizationMode = fleet.FirstMatch
	}
	values, err := takeValues(want)
	if err != nil {
		return nil, nil, fault.Stall("InvalidValues", fmt.Errorf("%s: %w", draft.Path, err))
	}
	return want, values, nil
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

func (c *Controller) update(ctx context.Context, repo *fleet.GitRepo, have, want *fleet.Bundle) error {
	if owner := have.Labels[fleet.RepoLabel]; owner != repo.Name {
		return fault.Stall("NameCollision", fmt.Errorf(
			"there is a bundle %s/%s already, which is not of this GitRepo (its %s is %q): rename one of the two by \"name\" in fleet.yaml",
			have.Namespace, have.Name, fleet.RepoLabel, owner))
	}
	next := have.DeepCopy()
	next.Labels, next.Spec = want.Labels, want.Spec
	controllerutil.AddFinalizer(next, fleet.Finalizer)
	return c.Client.Patch(ctx, next, client.MergeFrom(have))
}

// sweepValues deletes Secrets with older values of a bundle.
func (c *Controller) sweepValues(ctx context.Context, b *fleet.Bundle, current *corev1.Secret) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	err := c.Client.List(ctx, list, client.InNamespace(b.Namespace),
		client.MatchingLabels{fleet.BundleLabel: b.Name, fleet.ManagedLabel: "true"})
	if err != nil {
		return err
	}
	for i := range list.Items {
		if current != nil && list.Items[i].Name == current.Name {
			continue
		}
		if err := c.Client.Delete(ctx, &list.Items[i]); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// bundlesBut lists the Bundles of a GitRepo but those to keep. It is read past
// the cache: a Bundle that was just made must not be missed.
func (c *Controller) bundlesBut(ctx context.Context, repo *fleet.GitRepo, keep map[string]bool) ([]fleet.Bundle, error) {
	list := &fleet.BundleList{}
	err := c.Live.List(ctx, list, client.InNamespace(repo.Namespace), client.MatchingLabels{fleet.RepoLabel: repo.Name})
	return slices.DeleteFunc(list.Items, func(b fleet.Bundle) bool { return keep[b.Name] }), err
}

func (c *Controller) deleteBundles(ctx context.Context, bundles []fleet.Bundle) error {
	for i := range bundles {
		if !bundles[i].DeletionTimestamp.IsZero() {
			continue
		}
		if err := c.Client.Delete(ctx, &bundles[i]); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete bundle %s: %w", bundles[i].Name, err)
		}
	}
	return nil
}

// repoOf maps a Bundle to its GitRepo.
func repoOf(_ context.Context, obj client.Object) []ctrl.Request {
	name := obj.GetLabels()[fleet.RepoLabel]
	if name == "" {
		return nil
	}
	return []ctrl.Request{{NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: name}}}
}

// reposNear maps what limits a namespace to the GitRepos in it.
func (c *Controller) reposNear(ctx context.Context, obj client.Object) []ctrl.Request {
	list := &fleet.GitRepoList{}
	if err := c.Client.List(ctx, list, client.InNamespace(obj.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	var out []ctrl.Request
	for i := range list.Items {
		out = append(out, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return out
}

// polls tells whether the repository answers; when it does again, a fetch that
// failed for the same reason is worth another try.
func polls(repo *fleet.GitRepo) bool {
	return fleet.IsConditionTrue(repo.Status.Conditions, fleet.ConditionGitPolling)
}

// workToDo passes changes of a GitRepo's spec, labels, finalizers and of what a
// poll found; not those that this controller makes itself.
func workToDo() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*fleet.GitRepo), e.ObjectNew.(*fleet.GitRepo)
		return before.Generation != after.Generation ||
			before.Status.PollingCommit != after.Status.PollingCommit ||
			polls(before) != polls(after) ||
			before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
			len(before.Finalizers) != len(after.Finalizers) ||
			!maps.Equal(before.Labels, after.Labels)
	}}
}
