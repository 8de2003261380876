package pack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/flotilla-sh/flotilla/internal/bundle"
	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/hub/bundle/write"
	"github.com/flotilla-sh/flotilla/internal/reconcile"
	"github.com/flotilla-sh/flotilla/internal/source/git"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// writers bounds the Bundles of one GitRepo that are written at one time.
const writers = 8

// write makes the Bundles of a GitRepo be its drafts. The Bundle of a draft
// with an error stays as it is, and what hinders one is its error alone.
func (c *Controller) write(ctx context.Context, repo *fleet.GitRepo, commit string, drafts []bundle.Draft) error {
	if len(drafts) == 0 {
		return nil
	}
	registry := repo.Spec.OCIRegistrySecret
	if registry == "" {
		var err error
		if registry, err = c.Bundles.Registry(ctx, repo.Namespace); err != nil {
			return err
		}
	}
	writes := reconcile.AtMost(writers)
	for i := range drafts {
		draft := &drafts[i]
		if draft.Err != nil {
			continue
		}
		writes.Do(func() error {
			err := c.Bundles.Write(ctx, owner(repo), bundleOf(repo, commit, registry, draft), draft.Files)
			if err != nil && ctx.Err() == nil {
				draft.Err = fmt.Errorf("bundle %s: %w", draft.Name, err)
				return nil
			}
			return err
		})
	}
	return writes.Wait()
}

// prune deletes the Bundles of a GitRepo that no draft stands for. Before that
// the server is asked once more: a commit that a poll found under an earlier
// spec, or that was overtaken, says nothing about what is gone. Where the branch
// is not followed the commit is what the user wants, whatever the server has.
func (c *Controller) prune(ctx context.Context, repo *fleet.GitRepo, remote git.Remote, commit string, drafts []bundle.Draft) error {
	keep := map[string]bool{}
	for i := range drafts {
		keep[drafts[i].Name] = true
	}
	gone, err := c.Bundles.But(ctx, owner(repo), keep)
	if err != nil || len(gone) == 0 {
		return err
	}
	if !pinned(repo) {
		newest, err := c.Git.Resolve(ctx, remote)
		if err != nil {
			return fmt.Errorf("ask whether %s is the newest commit, before bundles are deleted: %w", commit, err)
		}
		if newest != commit {
			c.Overtaken(client.ObjectKeyFromObject(repo), newest)
			return fault.Wait(pollOverdue, "Overtaken", fmt.Errorf("commit %s is not the newest any more; waiting for %s", commit, newest))
		}
	}
	if err := c.confirm(ctx, repo, commit); err != nil {
		return err
	}
	return c.Bundles.Delete(ctx, gone)
}

// confirm reads the GitRepo once more, past the cache: packing takes minutes
// where servers are slow, and what the user has taken back meanwhile removes
// nothing.
func (c *Controller) confirm(ctx context.Context, repo *fleet.GitRepo, commit string) error {
	now := &fleet.GitRepo{}
	if err := c.Bundles.Live.Get(ctx, client.ObjectKeyFromObject(repo), now); err != nil {
		return fmt.Errorf("look whether the GitRepo is as it was, before bundles are deleted: %w", err)
	}
	if now.UID == repo.UID && now.Generation == repo.Generation && now.DeletionTimestamp.IsZero() && now.Status.PollingCommit == commit {
		return nil
	}
	return fault.Wait(changedSoon, "Overtaken", errors.New("the GitRepo, or its newest commit, has changed while it was packed: no bundle is deleted before it is packed again"))
}

// pinned tells whether a GitRepo stays at its commit: it is not polled, and
// nobody has just asked to fetch again.
func pinned(repo *fleet.GitRepo) bool {
	return repo.Spec.DisablePolling && repo.Spec.ForceSyncGeneration == repo.Status.UpdateGeneration
}

// bundleOf returns the Bundle for a draft, without its source.
func bundleOf(repo *fleet.GitRepo, commit, registry string, draft *bundle.Draft) *fleet.Bundle {
	labels := maps.Clone(draft.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[fleet.CommitLabel] = commit
	want := &fleet.Bundle{
		ObjectMeta: metav1.ObjectMeta{Namespace: repo.Namespace, Name: draft.Name, Labels: labels},
		Spec:       *draft.Spec.DeepCopy(),
	}
	want.Spec.OCIRegistrySecret = cmp.Or(want.Spec.OCIRegistrySecret, registry)
	return want
}

func owner(repo *fleet.GitRepo) write.Owner {
	return write.Owner{Kind: "GitRepo", Namespace: repo.Namespace, Name: repo.Name, Label: fleet.RepoLabel}
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
			before.Status.PollingSource != after.Status.PollingSource ||
			polls(before) != polls(after) ||
			before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
			len(before.Finalizers) != len(after.Finalizers) ||
			!maps.Equal(before.Labels, after.Labels)
	}}
}
