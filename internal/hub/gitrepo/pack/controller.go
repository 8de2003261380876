// Package pack is the controller that turns a commit into Bundles: it fetches
// the tree, scans it, stores the source of each bundle and creates, updates
// and deletes Bundles. It writes status.commit and the conditions Accepted,
// Reconciling and Stalled of GitRepos.
package pack

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/bundle"
	"github.com/flotilla-sh/flotilla/internal/effect"
	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/hub/access"
	"github.com/flotilla-sh/flotilla/internal/hub/bundle/packing"
	"github.com/flotilla-sh/flotilla/internal/hub/bundle/write"
	"github.com/flotilla-sh/flotilla/internal/reconcile"
	"github.com/flotilla-sh/flotilla/internal/source/chart"
	"github.com/flotilla-sh/flotilla/internal/source/git"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

const (
	// fetchTimeout bounds one fetch of a repository and its submodules.
	fetchTimeout = 5 * time.Minute
	// changedSoon is when to look again at a GitRepo that has changed while it was
	// packed; the change wakes the controller, too.
	changedSoon = 2 * time.Second
	// pollOverdue is when to look again for the answer of a poll; its arrival
	// wakes the controller before.
	pollOverdue = time.Minute
)

// Controller packs.
type Controller struct {
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
	// Overtaken tells whoever asks the Git servers that a GitRepo's commit is not
	// the newest one any more, and which one is.
	Overtaken func(repo types.NamespacedName, newest string)

	taken taken
	// alone is the turn of GitRepos that need much memory.
	alone turn
}

// Setup adds the controller to a manager.
func (c *Controller) Setup(mgr ctrl.Manager) error {
	c.alone = make(turn, 1)
	return (&packing.Frame[*fleet.GitRepo]{
		Kind: c, Name: "gitrepo-pack", Resource: "gitrepos",
		New:     func() *fleet.GitRepo { return &fleet.GitRepo{} },
		List:    func() client.ObjectList { return &fleet.GitRepoList{} },
		Owner:   owner,
		Changes: workToDo(),
		Bundles: c.Bundles, Clock: c.Clock,
	}).Setup(mgr)
}

// Next is how soon to look for newer charts; 0 for never.
func (c *Controller) Next(repo *fleet.GitRepo) time.Duration {
	return c.taken.next(repo, c.Clock.Now())
}

// Forget drops what is remembered of a GitRepo that is gone.
func (c *Controller) Forget(repo types.NamespacedName) { c.taken.forget(repo) }

// Pack does the work for the commit that the last poll found.
func (c *Controller) Pack(ctx context.Context, repo *fleet.GitRepo) error {
	commit := repo.Status.PollingCommit
	if commit == "" {
		return nil
	}
	remote, err := c.Access.Remote(ctx, repo)
	if err != nil {
		return err
	}
	if found := repo.Status.PollingSource; found != "" && found != git.Followed(remote) {
		// The commit is of what the spec named before.
		return fault.Wait(pollOverdue, "GitPolling", errors.New("waiting for the newest commit of the repository and branch or revision in the spec"))
	}
	in := scanInput(repo)
	in.MaxBytes = c.MaxBytes
	got, err := c.read(ctx, remote, commit, in)
	if err != nil {
		return err
	}
	defer got.done()
	drafts := got.drafts
	near := splitRemote(drafts)
	if err := c.write(ctx, repo, commit, drafts[:near]); err != nil {
		return err
	}
	c.bringCharts(ctx, repo, commit, got.tree, drafts[near:])
	if err := c.write(ctx, repo, commit, drafts[near:]); err != nil {
		return err
	}
	fleet.SetCondition(&repo.Status.Conditions, reconcile.Warnings(warnings(drafts)), c.Clock.Now())
	problem := problems(drafts, got.err)
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
	errs := []error{scanErr}
	for _, d := range drafts {
		errs = append(errs, d.Err)
	}
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) == 0 {
		return nil
	}
	lines := make([]string, len(errs))
	for i, err := range errs {
		lines[i] = err.Error()
	}
	return fault.Like(errors.Join(errs...), errors.New(strings.Join(lines, "; ")))
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

// Report turns the outcome into conditions.
func (c *Controller) Report(repo *fleet.GitRepo, err error) {
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
