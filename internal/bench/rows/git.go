package rows

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/bench/meter"
	"github.com/flotilla-sh/flotilla/internal/bench/report"
	"github.com/flotilla-sh/flotilla/internal/bench/stage"
	"github.com/flotilla-sh/flotilla/internal/lab/gitserver"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

const (
	// pollEach is the interval of the row poll, and pollFor how long polls are
	// watched: some intervals, after all GitRepos are Ready and one has passed.
	pollEach = 15 * time.Second
	pollFor  = 2 * time.Minute
	// filesEach is the number of files of one bundle of the row scan.
	filesEach = 25
	gitSpace  = "fleet-default"
)

// gitSite serves one repository under many names, and counts who asks.
type gitSite struct {
	*httptest.Server
	git      *gitserver.Server
	requests atomic.Int64
	dir      string
}

var manyNames = regexp.MustCompile(`^/app-[0-9]+\.git`)

func newGitSite() (*gitSite, error) {
	dir, err := os.MkdirTemp("", "flotilla-bench-git-")
	if err != nil {
		return nil, err
	}
	g := &gitSite{dir: dir}
	if g.git, err = gitserver.New(dir); err != nil {
		return nil, err
	}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.requests.Add(1)
		r.URL.Path = manyNames.ReplaceAllString(r.URL.Path, "/app.git")
		g.git.ServeHTTP(w, r)
	}))
	return g, nil
}

func (g *gitSite) stop() {
	g.Close()
	_ = os.RemoveAll(g.dir)
}

func (g *gitSite) commit(ctx context.Context, files map[string]string) (string, error) {
	return g.git.Commit(ctx, "app", gitserver.Commit{Message: "bench", Files: files})
}

// follow makes the GitRepo of a number.
func (g *gitSite) follow(ctx context.Context, s *stage.Stage, i int, interval time.Duration) error {
	spec := fleet.GitRepoSpec{Repo: fmt.Sprintf("%s/app-%d.git", g.URL, i), Branch: "main", PollingInterval: &metav1.Duration{Duration: interval}}
	return s.Hub.Create(ctx, &fleet.GitRepo{ObjectMeta: metav1.ObjectMeta{Namespace: gitSpace, Name: fmt.Sprintf("app-%d", i)}, Spec: spec})
}

// await waits until n GitRepos are at a commit.
func (g *gitSite) await(ctx context.Context, s *stage.Stage, n int, commit string) (time.Time, error) {
	return g.until(ctx, s, n, "at commit "+commit, func(r *fleet.GitRepo) bool { return r.Status.Commit == commit })
}

// awaitReady waits until n GitRepos are Ready.
func (g *gitSite) awaitReady(ctx context.Context, s *stage.Stage, n int) error {
	_, err := g.until(ctx, s, n, "Ready", func(r *fleet.GitRepo) bool {
		return fleet.IsConditionTrue(r.Status.Conditions, fleet.ConditionReady)
	})
	return err
}

// until waits until n GitRepos are as they should be.
func (g *gitSite) until(ctx context.Context, s *stage.Stage, n int, what string, is func(*fleet.GitRepo) bool) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	for {
		list := &fleet.GitRepoList{}
		if err := s.Hub.List(ctx, list, client.InNamespace(gitSpace)); err != nil {
			return time.Time{}, err
		}
		there := 0
		for i := range list.Items {
			if is(&list.Items[i]) {
				there++
			}
		}
		if there >= n {
			return time.Now(), nil
		}
		select {
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("%d of %d GitRepos are %s: %w", there, n, what, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// withGit starts a hub and a Git server for a row.
func withGit(measure func(context.Context, *Run, *stage.Stage, *gitSite) error) func(context.Context, *Run) error {
	return func(ctx context.Context, r *Run) error {
		s, err := r.stage(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = s.Stop() }()
		g, err := newGitSite()
		if err != nil {
			return err
		}
		defer g.stop()
		return measure(ctx, r, s, g)
	}
}

var pollRow = Row{
	Name: "poll", N: 300, Repeats: 1,
	Title: "N GitRepos, each of a repository of its own, polled every 15 s with no news, at rest",
	measure: withGit(func(ctx context.Context, r *Run, s *stage.Stage, g *gitSite) error {
		commit, err := g.commit(ctx, map[string]string{"a.yaml": stage.ConfigMap("app", "one")})
		if err != nil {
			return err
		}
		for i := range r.N {
			if err := g.follow(ctx, s, i, pollEach); err != nil {
				return err
			}
		}
		if _, err := g.await(ctx, s, r.N, commit); err != nil {
			return err
		}
		if err := g.awaitReady(ctx, s, r.N); err != nil {
			return err
		}
		// The last poll of the start, and what it writes, is over.
		if _, err := s.During(ctx, pollEach+pollEach/10); err != nil {
			return err
		}
		return r.memory(s, func() error {
			before := g.requests.Load()
			use, err := s.During(ctx, pollFor)
			if err != nil {
				return err
			}
			r.polled(g.requests.Load()-before, use)
			return nil
		})
	}),
}

// polled records what polls have cost, for an hour.
func (r *Run) polled(asked int64, use meter.Use) {
	hours := use.Took.Hours()
	writes := func(q meter.Request) bool { return byHub(q) && q.IsWrite() && q.Resource != "leases" }
	r.phase("poll", use)
	for _, f := range []report.Figure{
		{Name: "requests to Git servers per GitRepo and hour", Value: float64(asked) / float64(r.N) / hours, Floor: 240},
		{Name: "requests of the hub to its API server per hour", Value: float64(use.Requests.Sum(byHub)) / hours},
		{Name: "writes of them, but for its lease", Value: float64(use.Requests.Sum(writes)), Exact: true},
		{Name: "CPU of the hub per hour", Unit: "s", Value: use.CPU[meter.Hub].Seconds() / hours},
		{Name: "CPU of the API server per hour", Unit: "s", Value: use.CPU[meter.APIServer].Seconds() / hours},
	} {
		r.record(f)
	}
}

// scanned are the files of n bundles.
func scanned(n int) map[string]string {
	files := map[string]string{}
	for b := range n {
		for f := range filesEach {
			name := fmt.Sprintf("bundle-%03d-%02d", b, f)
			files[fmt.Sprintf("bundle-%03d/%02d.yaml", b, f)] = stage.ConfigMap(name, "one")
		}
		files[fmt.Sprintf("bundle-%03d/fleet.yaml", b)] = "namespace: default\n"
	}
	return files
}

var scanRow = Row{
	Name: "scan", N: 200, Repeats: 1,
	Title: fmt.Sprintf("commit → Bundles: N bundles of %d files in one repository, then a commit that changes one file", filesEach),
	measure: withGit(func(ctx context.Context, r *Run, s *stage.Stage, g *gitSite) error {
		commit, err := g.commit(ctx, scanned(r.N))
		if err != nil {
			return err
		}
		return r.memory(s, func() error {
			if err := r.scan(ctx, s, "first", func(ctx context.Context) (time.Time, error) {
				if err := g.follow(ctx, s, 0, time.Second); err != nil {
					return time.Time{}, err
				}
				return g.await(ctx, s, 1, commit)
			}); err != nil {
				return err
			}
			return r.scan(ctx, s, "one file", func(ctx context.Context) (time.Time, error) {
				next, err := g.commit(ctx, map[string]string{"bundle-000/00.yaml": stage.ConfigMap("bundle-000-00", "two")})
				if err != nil {
					return time.Time{}, err
				}
				return g.await(ctx, s, 1, next)
			})
		})
	}),
}

// scan measures one commit; a poll a second is in its time.
func (r *Run) scan(ctx context.Context, s *stage.Stage, name string, do func(context.Context) (time.Time, error)) error {
	took, use, err := s.Cost(ctx, do)
	if err != nil {
		return err
	}
	r.phase(name, use)
	bundles := func(q meter.Request) bool { return byHub(q) && q.IsWrite() && q.Resource == "bundles" }
	for _, f := range []report.Figure{
		{Name: "commit → Bundles", Unit: "s", Value: took.Seconds()},
		{Name: "writes of Bundles", Value: float64(use.Requests.Sum(bundles)), Exact: true},
		{Name: "requests of the hub", Value: float64(use.Requests.Sum(byHub))},
		{Name: "CPU of the hub", Unit: "s", Value: use.CPU[meter.Hub].Seconds()},
	} {
		f.Name = name + ": " + f.Name
		r.record(f)
	}
	return nil
}
