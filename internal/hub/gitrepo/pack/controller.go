// Package pack is the controller that turns a commit into Bundles: it fetches
// the tree, scans it, stores the source of each bundle and creates, updates
// and deletes Bundles. It writes status.commit and the conditions Accepted,
// Reconciling and Stalled of GitRepos.
package pack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/flotilla-sh/flotilla/internal/bundle"
	"github.com/flotilla-sh/flotilla/internal/effect"
	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/hub/access"
	"github.com/flotilla-sh/flotilla/internal/hub/bundle/write"
	"github.com/flotilla-sh/flotilla/internal/hub/removal"
	"github.com/flotilla-sh/flotilla/internal/hub/tenancy"
	"github.com/flotilla-sh/flotilla/internal/reconcile"
	"github.com/flotilla-sh/flotilla/internal/source"
	"github.com/flotilla-sh/flotilla/internal/source/chart"
	"github.com/flotilla-sh/flotilla/internal/source/git"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

const (
	// fetchTimeout bounds one fetch of a repository and its submodules.
	fetchTimeout = 5 * time.Minute
	// bundlesGone is how often a deleted GitRepo looks for its last bundles.
	bundlesGone = 5 * time.Second
	// overtakenSoon is how soon a commit that was overtaken is looked at again.
	overtakenSoon = 2 * time.Second
)

// Controller packs.
type Controller struct {
	Client client.Client
	// Live reads what a deletion depends on, past all caches.
	Live   client.Reader
	Access *access.Reader
	Git    git.Source
	// Charts fetches charts from elsewhere.
	Charts  *chart.Fetcher
	Bundles *write.Writer
	Events  events.EventRecorder
	Clock   clock.PassiveClock
	// MaxBytes is how many bytes the bundles of one GitRepo may have together; 0 is
	// no bound.
	MaxBytes int64

	taken    taken
	statuses reconcile.Written
}

// Setup adds the controller to a manager.
func (c *Controller) Setup(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("gitrepo-pack").
		WithOptions(controller.Options{MaxConcurrentReconciles: 4, RateLimiter: reconcile.Backoff[ctrl.Request]()}).
		For(&fleet.GitRepo{}, builder.WithPredicates(workToDo())).
		Watches(&fleet.Bundle{}, handler.EnqueueRequestsFromMapFunc(repoOf),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&fleet.Policy{}, handler.EnqueueRequestsFromMapFunc(c.reposNear)).
		Watches(&fleet.GitRepoRestriction{}, handler.EnqueueRequestsFromMapFunc(c.reposNear)).
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(c.reposNear),
			builder.WithPredicates(predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetName() == fleet.OCIStorageSecret }))).
		Complete(c)
}

// Reconcile makes the Bundles of one GitRepo be those of its newest commit.
func (c *Controller) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	repo := &fleet.GitRepo{}
	if err := c.Client.Get(ctx, req.NamespacedName, repo); err != nil {
		c.taken.forget(req.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !repo.DeletionTimestamp.IsZero() {
		return reconcile.Result(ctx, c.finalize(ctx, repo))
	}
	if controllerutil.AddFinalizer(repo, fleet.Finalizer) {
		if err := c.Client.Update(ctx, repo); err != nil {
			return reconcile.Result(ctx, err)
		}
	}
	patcher := c.statuses.Patcher(c.Client, repo)
	err := c.pack(ctx, repo)
	c.report(repo, err)
	if patchErr := patcher.Status(ctx, repo); patchErr != nil {
		return reconcile.Result(ctx, patchErr)
	}
	if soon := c.taken.next(repo, c.Clock.Now()); err == nil && soon > 0 {
		return ctrl.Result{RequeueAfter: soon}, nil
	}
	return reconcile.Result(ctx, err)
}

// pack does the work for the commit that the last poll found.
func (c *Controller) pack(ctx context.Context, repo *fleet.GitRepo) error {
	if err := tenancy.Check(ctx, c.Client, repo.Namespace); err != nil {
		return err
	}
	commit := repo.Status.PollingCommit
	if commit == "" {
		return nil
	}
	remote, err := c.Access.Remote(ctx, repo)
	if err != nil {
		return err
	}
	// A scan can fail for one path and still have found bundles at others.
	var tree source.Tree
	var drafts []bundle.Draft
	var scanErr error
	in := scanInput(repo)
	in.MaxBytes = c.MaxBytes
	if err := c.fetch(ctx, remote, commit, func(t source.Tree) {
		tree = t
		drafts, scanErr = bundle.Scan(tree, in)
	}); err != nil {
		return err
	}
	near := splitRemote(drafts)
	if err := c.write(ctx, repo, commit, drafts[:near]); err != nil {
		return err
	}
	c.bringCharts(ctx, repo, commit, tree, drafts[near:])
	if err := c.write(ctx, repo, commit, drafts[near:]); err != nil {
		return err
	}
	fleet.SetCondition(&repo.Status.Conditions, reconcile.Warnings(warnings(drafts)), c.Clock.Now())
	problem := problems(drafts, scanErr)
	if problem == nil {
		// Only a commit that was understood whole can say what is gone.
		if err := c.prune(ctx, repo, remote, commit, drafts); err != nil {
			return err
		}
	}
	if len(drafts) > 0 && repo.Status.Commit != commit {
		repo.Status.Commit = commit
		// Ready spoke of the commit before; the summary judges anew.
		fleet.SetCondition(&repo.Status.Conditions, reconcile.Working(commit), c.Clock.Now())
	}
	repo.Status.ObservedGeneration = repo.Generation
	repo.Status.UpdateGeneration = repo.Spec.ForceSyncGeneration
	return problem
}

func (c *Controller) fetch(ctx context.Context, remote git.Remote, commit string, read func(source.Tree)) error {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	return c.Git.Read(ctx, remote, commit, read)
}

func scanInput(repo *fleet.GitRepo) bundle.Input {
	spec := &repo.Spec
	return bundle.Input{
		RepoName:            repo.Name,
		Paths:               spec.Paths,
		Bundles:             spec.Bundles,
		ServiceAccount:      spec.ServiceAccount,
		TargetNamespace:     spec.TargetNamespace,
		Paused:              spec.Paused,
		KeepResources:       spec.KeepResources,
		DeleteNamespace:     spec.DeleteNamespace,
		CorrectDrift:        spec.CorrectDrift,
		ForceSyncGeneration: spec.ForceSyncGeneration,
		Labels:              repo.Labels,
		Targets:             spec.Targets,
	}
}

// problems joins what is wrong with paths and directories; the others went on.
// Where some of it can pass by itself, all of it is looked at again.
func problems(drafts []bundle.Draft, scanErr error) error {
	var lines []string
	if scanErr != nil {
		lines = append(lines, scanErr.Error())
	}
	kind, after, reason := fault.Stalled, time.Duration(0), fault.ReasonOf(scanErr, "")
	for _, d := range drafts {
		if d.Err == nil {
			continue
		}
		lines = append(lines, d.Err.Error())
		reason = cmp.Or(reason, fault.ReasonOf(d.Err, ""))
		switch wait := fault.AfterOf(d.Err); fault.KindOf(d.Err) {
		case fault.Transient:
			kind = fault.Transient
		case fault.Waiting:
			kind = min(kind, fault.Waiting)
			if after == 0 || wait < after {
				after = wait
			}
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return &fault.Error{Kind: kind, Reason: cmp.Or(reason, "InvalidBundle"), After: after, Err: errors.New(strings.Join(lines, "; "))}
}

func warnings(drafts []bundle.Draft) []string {
	var all []string
	for _, d := range drafts {
		for _, w := range d.Warnings {
			all = append(all, w.String())
		}
	}
	return all
}

// report turns the outcome into conditions.
func (c *Controller) report(repo *fleet.GitRepo, err error) {
	now := c.Clock.Now()
	set := func(condition fleet.Condition) bool {
		return fleet.SetCondition(&repo.Status.Conditions, condition, now)
	}
	accepted := reconcile.Outcome(fleet.ConditionAccepted, nil)
	if fault.ReasonOf(err, "") == fleet.ReasonPolicyViolation {
		accepted = reconcile.Outcome(fleet.ConditionAccepted, err)
	}
	set(accepted)
	set(effect.Condition(effect.OfGitRepo(&repo.Spec)))
	stalled := fleet.Condition{Type: fleet.ConditionStalled, Status: metav1.ConditionFalse}
	repo.Status.GitJobStatus = "Current"
	if err != nil {
		stalled = fleet.Condition{Type: fleet.ConditionStalled, Status: metav1.ConditionTrue,
			Reason: fault.ReasonOf(err, fleet.ReasonError), Message: err.Error()}
		repo.Status.GitJobStatus = "Failed"
	}
	if set(stalled) && err != nil {
		c.Events.Eventf(repo, nil, "Warning", stalled.Reason, "Pack", "%s", err)
	}
}

// finalize deletes the Bundles of a GitRepo that was deleted by itself, and
// waits for them. Where its namespace or kind goes, nothing is removed.
func (c *Controller) finalize(ctx context.Context, repo *fleet.GitRepo) error {
	if !controllerutil.ContainsFinalizer(repo, fleet.Finalizer) {
		return nil
	}
	deliberate, err := removal.Deliberate(ctx, c.Live, repo, "gitrepos")
	if err != nil {
		return err
	}
	if deliberate {
		left, err := c.Bundles.But(ctx, owner(repo), nil)
		if err != nil {
			return err
		}
		if len(left) > 0 {
			if err := c.Bundles.Delete(ctx, left); err != nil {
				return err
			}
			return c.waitFor(ctx, repo, len(left))
		}
	}
	controllerutil.RemoveFinalizer(repo, fleet.Finalizer)
	return client.IgnoreNotFound(c.Client.Update(ctx, repo))
}

// waitFor says on a deleted GitRepo that it waits for its bundles.
func (c *Controller) waitFor(ctx context.Context, repo *fleet.GitRepo, bundles int) error {
	waiting := fault.Wait(bundlesGone, "Removing", fmt.Errorf("waiting until %d bundles are removed from their clusters", bundles))
	patcher := c.statuses.Patcher(c.Client, repo)
	fleet.SetCondition(&repo.Status.Conditions, fleet.Condition{
		Type: fleet.ConditionReconciling, Status: metav1.ConditionTrue, Reason: "Removing", Message: waiting.Error(),
	}, c.Clock.Now())
	if err := patcher.Status(ctx, repo); err != nil {
		return err
	}
	return waiting
}
