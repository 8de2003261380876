package rows

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-sh/flotilla/internal/bench/meter"
	"github.com/flotilla-sh/flotilla/internal/bench/report"
	"github.com/flotilla-sh/flotilla/internal/bench/stage"
	"github.com/flotilla-sh/flotilla/internal/lab/gitserver"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

const (
	// blob is the size of a file of the repository of many MB, and batch how many
	// of them are made at once.
	blob  = 100_000
	batch = 500
	// filesPerMB is how many files the other repository has for each MB of the
	// first.
	filesPerMB = 100
)

// largeRepository is a repository that holds one bundle and much else.
type largeRepository struct {
	name string
	// files are how many files it has beside the bundle, and content makes one.
	files   int
	content func(r *rand.ChaCha8, i int) (path, text string)
}

func largeRepositories(n int) []largeRepository {
	noise := func(r *rand.ChaCha8, i int) (string, string) {
		b := make([]byte, blob)
		_, _ = r.Read(b) // it does not fail
		return fmt.Sprintf("data/%03d/%d.bin", i/100, i), string(b)
	}
	small := func(_ *rand.ChaCha8, i int) (string, string) {
		return fmt.Sprintf("team-%03d/app-%02d/%d.yml.tmpl", i/1000, i/50%20, i), fmt.Sprintf("file: %d\n", i)
	}
	return []largeRepository{
		{fmt.Sprintf("%d MB", n), n * 1_000_000 / blob, noise},
		{fmt.Sprintf("%d files", n*filesPerMB), n * filesPerMB, small},
	}
}

// make fills the repository of a number.
func (g *gitSite) make(ctx context.Context, repo string, l largeRepository) (string, error) {
	if err := g.git.Create(ctx, repo); err != nil {
		return "", err
	}
	// Noise has no deltas, and the server is not what is measured.
	if _, err := g.git.Git(ctx, repo, "config", "pack.window", "0"); err != nil {
		return "", err
	}
	source := rand.NewChaCha8([32]byte{1})
	files := map[string]string{"app/fleet.yaml": "namespace: default\n", "app/cm.yaml": stage.ConfigMap("app-"+repo, "one")}
	for i := range l.files {
		path, text := l.content(source, i)
		files[path] = text
		if len(text) == blob && len(files) >= batch {
			if _, err := g.git.Commit(ctx, repo, gitserver.Commit{Message: "bench", Files: files}); err != nil {
				return "", err
			}
			files = map[string]string{}
		}
	}
	return g.git.Commit(ctx, repo, gitserver.Commit{Message: "bench", Files: files})
}

var largeRow = Row{
	Name: "large-repo", N: 1000, Repeats: 1,
	Title: fmt.Sprintf("a repository of N MB and one of N × %d files, with one bundle each; another GitRepo meanwhile", filesPerMB),
	measure: withGit(func(ctx context.Context, r *Run, s *stage.Stage, g *gitSite) error {
		commit, err := g.commit(ctx, map[string]string{"a.yaml": stage.ConfigMap("app", "zero")})
		if err != nil {
			return err
		}
		if err := g.follow(ctx, s, 0, time.Second); err != nil {
			return err
		}
		if _, err := g.await(ctx, s, 1, commit); err != nil {
			return err
		}
		for i, l := range largeRepositories(r.N) {
			if err := r.large(ctx, s, g, fmt.Sprintf("large-%d", i), l); err != nil {
				return fmt.Errorf("%s: %w", l.name, err)
			}
		}
		return nil
	}),
}

// large measures a repository: its first commit, while another GitRepo gets one,
// and one changed file.
func (r *Run) large(ctx context.Context, s *stage.Stage, g *gitSite, repo string, l largeRepository) error {
	commit, err := g.make(ctx, repo, l)
	if err != nil {
		return err
	}
	r.Log("%s are committed", l.name)
	err = r.largeCommit(ctx, s, g, l.name+", first", func() (string, error) {
		return commit, s.Hub.Create(ctx, &fleet.GitRepo{ObjectMeta: metav1.ObjectMeta{Namespace: gitSpace, Name: repo}, Spec: fleet.GitRepoSpec{
			Repo: g.URL + "/" + repo + ".git", Branch: "main", PollingInterval: &metav1.Duration{Duration: time.Second},
		}})
	})
	if err != nil {
		return err
	}
	return r.largeCommit(ctx, s, g, l.name+", one file", func() (string, error) {
		return g.git.Commit(ctx, repo, gitserver.Commit{Message: "bench", Files: map[string]string{"app/cm.yaml": stage.ConfigMap("app-"+repo, "two")}})
	})
}

// largeCommit measures one commit. The other GitRepo gets its own a second later.
func (r *Run) largeCommit(ctx context.Context, s *stage.Stage, g *gitSite, name string, do func() (string, error)) error {
	memory, err := meter.WatchMemory(s.HubPID())
	if err != nil {
		return err
	}
	var beside time.Duration
	took, use, err := s.Cost(ctx, func(ctx context.Context) (time.Time, error) {
		commit, err := do()
		if err != nil {
			return time.Time{}, err
		}
		var group errgroup.Group
		group.Go(func() (err error) {
			beside, err = g.beside(ctx, s, name)
			return err
		})
		done, err := g.await(ctx, s, 1, commit)
		return done, errors.Join(err, group.Wait())
	})
	if err != nil {
		return err
	}
	peak, err := memory.Stop()
	if err != nil {
		return err
	}
	for _, f := range []report.Figure{
		{Name: "commit → Bundle", Unit: "s", Value: took.Seconds()},
		{Name: "CPU of the hub", Unit: "s", Value: use.CPU[meter.Hub].Seconds()},
		{Name: "hub peak memory, anonymous", Unit: "MB", Value: float64(peak.Anonymous) / 1e6},
		{Name: "hub peak memory, resident", Unit: "MB", Value: float64(peak.Resident) / 1e6},
		{Name: "another GitRepo meanwhile", Unit: "s", Value: beside.Seconds()},
	} {
		f.Name = name + ": " + f.Name
		r.record(f)
	}
	return nil
}

// beside is how long the other GitRepo needs for a commit, a second from now.
func (g *gitSite) beside(ctx context.Context, s *stage.Stage, name string) (time.Duration, error) {
	time.Sleep(time.Second)
	began := time.Now()
	commit, err := g.commit(ctx, map[string]string{"a.yaml": stage.ConfigMap("app", name)})
	if err != nil {
		return 0, err
	}
	done, err := g.await(ctx, s, 1, commit)
	return done.Sub(began), err
}
