package pack

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/bundle"
	"github.com/flotilla-sh/flotilla/internal/charts"
	"github.com/flotilla-sh/flotilla/internal/source"
	"github.com/flotilla-sh/flotilla/internal/source/chart"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// chartsTimeout bounds what all charts of a repository may take together, so
// that servers that do not answer keep no worker for long.
const chartsTimeout = 10 * time.Minute

// splitRemote puts the drafts that need the network last, and returns how many
// do not: those are written first and wait for no server.
func splitRemote(drafts []bundle.Draft) int {
	needs := make(map[string]bool, len(drafts))
	near := 0
	for i := range drafts {
		if needs[drafts[i].Name] = charts.Needed(&drafts[i]); !needs[drafts[i].Name] {
			near++
		}
	}
	slices.SortStableFunc(drafts, func(a, b bundle.Draft) int {
		switch {
		case needs[a.Name] == needs[b.Name]:
			return 0
		case needs[a.Name]:
			return 1
		}
		return -1
	})
	return near
}

// bringCharts brings charts into drafts. A draft that lacks one has an error,
// and the others go on.
func (c *Controller) bringCharts(ctx context.Context, repo *fleet.GitRepo, commit string, tree source.Tree, drafts []bundle.Draft) {
	if len(drafts) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, chartsTimeout)
	defer cancel()
	reach, err := c.Access.Charts(ctx, repo)
	packer := charts.NewPacker(c.Charts)
	defer packer.Close()
	for i := range drafts {
		draft := &drafts[i]
		if err != nil {
			draft.Err = fmt.Errorf("%s: %w", draft.Path, err)
			continue
		}
		draft.Err = c.bringChart(ctx, repo, commit, packer, charts.Input{Draft: draft, Tree: tree.FS, Access: reach(draft.Path)})
	}
}

func (c *Controller) bringChart(ctx context.Context, repo *fleet.GitRepo, commit string, packer *charts.Packer, in charts.Input) error {
	key := client.ObjectKey{Namespace: repo.Namespace, Name: in.Draft.Name}
	have, err := c.Bundles.Have(ctx, owner(repo), in.Draft.Name)
	if err != nil {
		return fmt.Errorf("%s: %w", in.Draft.Path, err)
	}
	if have != nil {
		in.Have, in.Stored = have.Bundle.Spec.Charts, have.Files
	}
	in.Refresh = c.taken.refresh(repo, key, commit, c.Clock.Now())
	err = packer.Fill(ctx, in)
	c.taken.note(repo, key, commit, in, err, c.Clock.Now())
	if err == nil {
		c.tellNewer(repo, in.Draft.Name, in.Have, in.Draft.Spec.Charts)
	}
	return err
}

// tellNewer makes an event of each chart that is another version now although
// the options name the same.
func (c *Controller) tellNewer(repo *fleet.GitRepo, name string, before, now []fleet.BundleChart) {
	for _, n := range now {
		for _, b := range before {
			if b.Repo == n.Repo && b.Chart == n.Chart && b.Constraint == n.Constraint && b.Dir == n.Dir && b.Digest != n.Digest {
				c.Events.Eventf(repo, nil, "Normal", "GotNewChartVersion", "Pack", "bundle %s: the chart %s goes from %s to %s", name, n.Chart, b.Version, n.Version)
			}
		}
	}
}

// taken remembers when the charts of bundles were looked for. After a restart
// it is empty, and what the status says of the commit counts: a restart looks
// for nothing.
type taken struct {
	mu      sync.Mutex
	bundles map[types.NamespacedName]taking
}

// taking is the last time that charts of a bundle were brought.
type taking struct {
	repo string
	// commit and force are what they were brought for; a commit that failed is
	// none.
	commit string
	force  int64
	at     time.Time
	// open tells whether newer ones may come.
	open bool
}

// refresh decides which charts of a bundle are looked for anew:
//
//   - all, where forceSyncGeneration was raised;
//   - those whose name allows newer ones, with each new commit, and where
//     chartPollingInterval has passed;
//   - else none: the bundle keeps what it has.
func (t *taken) refresh(repo *fleet.GitRepo, key types.NamespacedName, commit string, now time.Time) charts.Refresh {
	t.mu.Lock()
	defer t.mu.Unlock()
	last, known := t.bundles[key]
	if !known {
		last = taking{commit: repo.Status.Commit, force: repo.Status.UpdateGeneration, at: now}
	}
	switch every := chartInterval(repo); {
	case last.force != repo.Spec.ForceSyncGeneration:
		return charts.All
	case last.commit != commit, every > 0 && now.Sub(last.at) >= every:
		return charts.Newer
	}
	return charts.Keep
}

// note remembers how that went. What failed is looked for again.
func (t *taken) note(repo *fleet.GitRepo, key types.NamespacedName, commit string, in charts.Input, err error, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	last, known := t.bundles[key]
	next := taking{repo: repo.Name, commit: commit, force: repo.Spec.ForceSyncGeneration, at: last.at}
	if !known || in.Refresh != charts.Keep {
		next.at = now
	}
	if err != nil {
		next.open = last.open
		switch in.Refresh {
		case charts.All:
			next.force--
		case charts.Newer:
			next.commit = ""
		}
	} else {
		for _, c := range in.Draft.Spec.Charts {
			next.open = next.open || !chart.Exact(chart.Want{Repo: c.Repo, Chart: c.Chart, Version: c.Constraint})
		}
	}
	if t.bundles == nil {
		t.bundles = map[types.NamespacedName]taking{}
	}
	t.bundles[key] = next
}

// forget drops what a repository had.
func (t *taken) forget(repo types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, last := range t.bundles {
		if key.Namespace == repo.Namespace && last.repo == repo.Name {
			delete(t.bundles, key)
		}
	}
}

// next is how soon to look for newer charts of a repository; 0 for never.
func (t *taken) next(repo *fleet.GitRepo, now time.Time) time.Duration {
	every := chartInterval(repo)
	if every <= 0 {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	soonest := time.Duration(0)
	for key, last := range t.bundles {
		if key.Namespace != repo.Namespace || last.repo != repo.Name || !last.open {
			continue
		}
		if left := max(last.at.Add(every).Sub(now), time.Second); soonest == 0 || left < soonest {
			soonest = left
		}
	}
	return soonest + rand.N(soonest/10+1)
}

func chartInterval(repo *fleet.GitRepo) time.Duration {
	if repo.Spec.ChartPollingInterval == nil {
		return 0
	}
	return repo.Spec.ChartPollingInterval.Duration
}
