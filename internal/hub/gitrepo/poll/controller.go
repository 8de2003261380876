// Package poll is the controller that asks Git servers for new commits. It
// writes status.pollingCommit and the GitPolling condition of GitRepos.
package poll

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/hub/access"
	"github.com/flotilla-sh/flotilla/internal/reconcile"
	"github.com/flotilla-sh/flotilla/internal/source/git"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// defaultInterval is how often a repository is asked where the GitRepo does
// not say.
const defaultInterval = 15 * time.Second

// hookedInterval is how often a repository is asked whose server calls, where
// the GitRepo does not say: often enough for a call that was lost.
const hookedInterval = time.Hour

// secretAgain is how often the Secret of a repository that does not answer is
// read again, at least.
const secretAgain = time.Minute

// never is the interval of a GitRepo that is not polled: it is asked when the
// hub starts, what identifies its repository changes, or a webhook comes.
const never = 10000 * time.Hour

// Controller polls.
type Controller struct {
	Client client.Client
	// Git is asked for the newest commits.
	Git    git.Source
	Access *access.Reader
	Events events.EventRecorder
	Clock  clock.PassiveClock

	poller   *poller
	statuses reconcile.Written
	// polling is the context that polls live in; they outlive a reconcile.
	polling context.Context
}

// Setup adds the controller to a manager; polls end with ctx.
func (c *Controller) Setup(ctx context.Context, mgr ctrl.Manager) error {
	answers := make(chan event.GenericEvent, 1024)
	c.polling = ctx
	c.poller = newPoller(c.Git.Resolve, func(repo types.NamespacedName) {
		answers <- event.GenericEvent{Object: &fleet.GitRepo{ObjectMeta: metav1.ObjectMeta{Namespace: repo.Namespace, Name: repo.Name}}}
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("gitrepo-poll").
		WithOptions(controller.Options{RateLimiter: reconcile.Backoff[ctrl.Request]()}).
		For(&fleet.GitRepo{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, called()))).
		WatchesRawSource(source.Channel(answers, &handler.EnqueueRequestForObject{})).
		Complete(c)
}

// Expect has the repository of a GitRepo asked at once: it has a commit that the
// last poll did not find.
func (c *Controller) Expect(repo types.NamespacedName, commit string) { c.poller.Expect(repo, commit) }

// Reconcile takes part in the poll of one GitRepo and writes down its answer.
func (c *Controller) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	repo := &fleet.GitRepo{}
	if err := c.Client.Get(ctx, req.NamespacedName, repo); err != nil {
		c.poller.Drop(req.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !repo.DeletionTimestamp.IsZero() {
		c.poller.Drop(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	patcher := c.statuses.Patcher(c.Client, repo)
	err := c.poll(ctx, repo)
	if patchErr := patcher.Status(ctx, repo); patchErr != nil {
		return reconcile.Result(ctx, patchErr)
	}
	return reconcile.Result(ctx, err)
}

// poll writes the last answer into the status. An error is returned only where
// looking again is up to the work queue; the poller retries its own.
func (c *Controller) poll(ctx context.Context, repo *fleet.GitRepo) error {
	remote, err := c.Access.Remote(ctx, repo)
	if err != nil {
		c.poller.Drop(client.ObjectKeyFromObject(repo))
		c.report(repo, err)
		return err
	}
	result, ok := c.poller.Watch(c.polling, client.ObjectKeyFromObject(repo), remote, wish(repo))
	if !ok {
		return nil
	}
	c.report(repo, result.Err)
	if result.Commit != "" {
		repo.Status.PollingSource = git.Followed(remote)
	}
	if result.Commit != "" && result.Commit != repo.Status.PollingCommit {
		repo.Status.PollingCommit = result.Commit
		c.Events.Eventf(repo, nil, "Normal", "GotNewCommit", "Poll", "new commit %s", result.Commit)
	}
	// The Secret may be mended meanwhile: read it again.
	return fault.Wait(min(interval(repo), secretAgain), "GitPolling", result.Err)
}

func (c *Controller) report(repo *fleet.GitRepo, err error) {
	condition := reconcile.Outcome(fleet.ConditionGitPolling, err)
	changed := fleet.SetCondition(&repo.Status.Conditions, condition, c.Clock.Now())
	if changed && err != nil {
		c.Events.Eventf(repo, nil, "Warning", "FailedToCheckCommit", "Poll", "%s", err)
	}
}

// wish is how a GitRepo wants its repository to be asked.
func wish(repo *fleet.GitRepo) Wish {
	return Wish{Interval: interval(repo), Call: Call{
		Commit: repo.Status.WebhookCommit,
		At:     repo.Status.LastWebhookTime.Time,
		Force:  repo.Spec.ForceSyncGeneration,
	}}
}

func interval(repo *fleet.GitRepo) time.Duration {
	wanted := repo.Spec.PollingInterval
	switch {
	case repo.Spec.DisablePolling:
		return never
	case wanted != nil && wanted.Duration > 0:
		return wanted.Duration
	case !repo.Status.LastWebhookTime.IsZero():
		return hookedInterval
	default:
		return defaultInterval
	}
}

// called passes GitRepos for which a webhook came.
func called() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false }, DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, after := e.ObjectOld.(*fleet.GitRepo), e.ObjectNew.(*fleet.GitRepo)
			return wish(before).Call != wish(after).Call
		},
	}
}
