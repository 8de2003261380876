package hubtest_test

import (
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-sh/flotilla/internal/hub"
	"github.com/flotilla-sh/flotilla/internal/source/git"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// asked counts the questions for the newest commit of a repository.
type asked struct {
	git.Source
	times atomic.Int32
	// slow answers no question while it is locked.
	slow sync.RWMutex
}

func (a *asked) Resolve(ctx context.Context, r git.Remote) (string, error) {
	a.times.Add(1)
	a.slow.RLock()
	defer a.slow.RUnlock()
	return a.Source.Resolve(ctx, r)
}

// askedBy makes a hub that is started later ask through an asked.
func (w *whole) askedBy() *asked {
	a := &asked{}
	w.configure = func(o *hub.Options) {
		clones, err := git.NewCache(filepath.Join(w.TempDir(), "git"))
		w.must(err)
		a.Source = clones
		o.Git = a
	}
	return a
}

// TestAPathIsRemovedWhereTheBranchHasMoved takes a path off GitRepos whose
// branch has moved since their last poll: one that is polled rarely goes on to the
// newest commit, and one that is not polled stays where it is.
func TestAPathIsRemovedWhereTheBranchHasMoved(t *testing.T) {
	w := newWhole(t)
	a := w.askedBy()
	push, url := w.serveGit()
	files := map[string]string{"a/a.yaml": configMap("one")[0].Content, "b/b.yaml": configMap("one")[0].Content}
	first := push("app", files)
	repo := func(name string, spec fleet.GitRepoSpec) *fleet.GitRepo {
		spec.Repo, spec.Branch, spec.Paths = url+"/app.git", "main", []string{"a", "b"}
		r := &fleet.GitRepo{ObjectMeta: w.meta(name), Spec: spec}
		w.create(r)
		return r
	}
	rare := repo("rare", fleet.GitRepoSpec{PollingInterval: &metav1.Duration{Duration: time.Hour}})
	still := repo("still", fleet.GitRepoSpec{DisablePolling: true})
	w.start()
	there := func(name string) bool { return w.exists(&fleet.Bundle{ObjectMeta: w.meta(name)}) }
	w.eventually("pack", func() bool { return there("rare-b") && there("still-b") })
	w.rest()
	files["a/a.yaml"] = configMap("two")[0].Content
	second := push("app", files)

	before := a.times.Load()
	w.edit(still, func() { still.Spec.Paths = []string{"a"} })
	w.eventually("take a path off at the commit that is wanted", func() bool { return !there("still-b") && w.atCommit(still, first) })
	if n := a.times.Load() - before; n > 0 {
		t.Errorf("the server is asked %d times for a branch that is not followed", n)
	}
	w.edit(rare, func() { rare.Spec.Paths = []string{"a"} })
	w.eventually("take a path off at the newest commit", func() bool { return !there("rare-b") && w.atCommit(rare, second) })
	if n := a.times.Load() - before; n > 4 {
		t.Errorf("the server is asked %d times for one commit that was not known", n)
	}
}

// TestAPathThatIsGivenBackRemovesNothing takes a path off a GitRepo and gives it
// back while the server is slow to say which commit is the newest.
func TestAPathThatIsGivenBackRemovesNothing(t *testing.T) {
	w := newWhole(t)
	a := w.askedBy()
	push, url := w.serveGit()
	commit := push("app", map[string]string{"a/a.yaml": configMap("one")[0].Content, "b/b.yaml": configMap("one")[0].Content})
	repo := &fleet.GitRepo{ObjectMeta: w.meta("app"), Spec: fleet.GitRepoSpec{
		Repo: url + "/app.git", Branch: "main", Paths: []string{"a", "b"}, PollingInterval: &metav1.Duration{Duration: time.Hour},
	}}
	w.create(repo)
	w.start()
	b := &fleet.Bundle{ObjectMeta: w.meta("app-b")}
	w.eventually("pack", func() bool { return w.exists(b) && w.atCommit(repo, commit) })
	w.rest()
	before := b.UID

	a.slow.Lock()
	asked := a.times.Load()
	w.edit(repo, func() { repo.Spec.Paths = []string{"a"} })
	w.eventually("ask", func() bool { return a.times.Load() > asked })
	w.edit(repo, func() { repo.Spec.Paths = []string{"a", "b"} })
	a.slow.Unlock()
	w.eventually("be done with it", func() bool { return w.atCommit(repo, commit) })
	w.rest()
	if !w.exists(b) || b.UID != before || b.DeletionTimestamp != nil {
		t.Error("a bundle is deleted that the GitRepo names")
	}
}

// atCommit tells whether a GitRepo is done with its newest generation, at a commit.
func (w *whole) atCommit(repo *fleet.GitRepo, commit string) bool {
	w.Helper()
	return w.exists(repo) && repo.Status.ObservedGeneration == repo.Generation && repo.Status.Commit == commit
}
