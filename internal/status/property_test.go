package status_test

import (
	"fmt"
	"math/rand"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-sh/flotilla/internal/status"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// world is everything that a board was last told.
type world struct {
	deployments map[types.NamespacedName]*fleet.BundleDeployment
	bundles     map[types.NamespacedName]status.BundleFacts
	clusters    map[types.NamespacedName]status.ClusterFacts
}

var (
	someClusters = []string{"c1", "c2", "c3", "c4"}
	someBundles  = []string{"b1", "b2", "b3"}
	someRepos    = []string{"r1", "r2", ""}
	someGroups   = []string{"g1", "g2"}
)

func newWorld() world {
	return world{
		map[types.NamespacedName]*fleet.BundleDeployment{},
		map[types.NamespacedName]status.BundleFacts{}, map[types.NamespacedName]status.ClusterFacts{},
	}
}

// recount tells a new board everything, in one order of many.
func (w world) recount(r *rand.Rand) *status.Board {
	b := status.NewBoard()
	var steps []func()
	for _, bd := range w.deployments {
		steps = append(steps, func() { b.Observe(bd) })
	}
	for name, facts := range w.bundles {
		steps = append(steps, func() { b.SetBundle(name, facts) })
	}
	for name, facts := range w.clusters {
		steps = append(steps, func() { b.SetCluster(name, facts) })
	}
	r.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
	for _, step := range steps {
		step()
	}
	return b
}

// change does one random thing to the world and the board alike.
func (w world) change(r *rand.Rand, b *status.Board) []status.Parent {
	cluster, bundle := ws(pick(r, someClusters)), ws(pick(r, someBundles))
	switch r.Intn(10) {
	case 0:
		facts := status.ClusterFacts{Unseen: r.Intn(4) == 0}
		if r.Intn(2) == 0 {
			facts.Silence = "since " + pick(r, []string{"yesterday", "today"})
		}
		for _, g := range someGroups {
			if r.Intn(2) == 0 {
				facts.Groups = append(facts.Groups, ws(g))
			}
		}
		w.clusters[cluster] = facts
		return b.SetCluster(cluster, facts)
	case 1:
		facts := w.randomBundle(r, bundle)
		w.bundles[bundle] = facts
		return b.SetBundle(bundle, facts)
	case 2, 3:
		delete(w.deployments, types.NamespacedName{Namespace: "cluster-" + cluster.Name, Name: bundle.Name})
		return b.Forget("cluster-"+cluster.Name, bundle.Name)
	default:
		bd := randomDeployment(r, bundle.Name, cluster.Name)
		w.deployments[types.NamespacedName{Namespace: bd.Namespace, Name: bd.Name}] = bd
		return b.Observe(bd)
	}
}

// randomBundle gives a bundle always the same GitRepo or HelmOp, as its
// deployments have it too.
func (w world) randomBundle(r *rand.Rand, bundle types.NamespacedName) status.BundleFacts {
	facts := status.BundleFacts{Source: sourceOf(bundle.Name), Held: map[types.NamespacedName]status.HeldBack{}}
	if r.Intn(5) == 0 {
		facts.Error = "broken"
	}
	for _, c := range someClusters {
		if r.Intn(3) == 0 {
			facts.Held[ws(c)] = status.HeldBack{Namespace: "cluster-" + c, Why: pick(r, []string{"window", "label"})}
		}
	}
	return facts
}

// sourceOf makes a HelmOp of the first name, and GitRepos of the others.
func sourceOf(bundle string) status.Parent {
	switch name := someRepos[slices.Index(someBundles, bundle)]; name {
	case "":
		return status.Parent{}
	case someRepos[0]:
		return status.Parent{Kind: status.KindHelmOp, Name: ws(name)}
	default:
		return from(name)
	}
}

func randomDeployment(r *rand.Rand, bundle, cluster string) *fleet.BundleDeployment {
	all := []modifier{unapplied, failing("boom"), unready, staged, drifted,
		modifiedBy(fleet.ModifiedStatus{APIVersion: "v1", Kind: "ConfigMap", Name: pick(r, someClusters)})}
	bd := deployment(bundle, cluster)
	delete(bd.Labels, fleet.RepoLabel)
	switch source := sourceOf(bundle); source.Kind {
	case status.KindGitRepo:
		bd.Labels[fleet.RepoLabel] = source.Name.Name
	case status.KindHelmOp:
		bd.Labels[fleet.HelmOpLabel] = source.Name.Name
	}
	if r.Intn(3) > 0 {
		all[r.Intn(len(all))](bd)
	}
	bd.Status.ResourceCounts.NotReady = r.Intn(3)
	return bd
}

func pick(r *rand.Rand, from []string) string { return from[r.Intn(len(from))] }

// picture is every roll-up of a board.
func picture(b *status.Board) map[status.Parent]any {
	all := map[status.Parent]any{}
	for _, n := range someClusters {
		all[status.Parent{Kind: status.KindCluster, Name: ws(n)}] = b.Cluster(ws(n))
	}
	for _, n := range someBundles {
		all[status.Parent{Kind: status.KindBundle, Name: ws(n)}] = b.Bundle(ws(n))
	}
	for _, n := range someRepos[:2] {
		all[from(n)] = b.GitRepo(ws(n), "")
		all[status.Parent{Kind: status.KindHelmOp, Name: ws(n)}] = b.HelmOp(ws(n))
	}
	for _, n := range someGroups {
		all[status.Parent{Kind: status.KindClusterGroup, Name: ws(n)}] = b.ClusterGroup(ws(n))
	}
	return all
}

// After any sequence of events the sums are those of a recount, and whoever's
// roll-up has changed was told.
func TestIncrementsEqualRecount(t *testing.T) {
	for seed := range int64(60) {
		r := rand.New(rand.NewSource(seed))
		w, b := newWorld(), status.NewBoard()
		before := picture(b)
		for step := range 60 {
			told := w.change(r, b)
			after := picture(b)
			for p, now := range after {
				if !slices.Contains(told, p) && !cmp.Equal(before[p], now) {
					t.Fatalf("seed %d step %d: %v changed and is not told: %s", seed, step, p, cmp.Diff(before[p], now))
				}
			}
			before = after
			if diff := cmp.Diff(picture(w.recount(r)), after); diff != "" {
				t.Fatalf("seed %d step %d: recount and increments differ (-recount +increments):\n%s", seed, step, diff)
			}
		}
	}
}

// A board that is told that everything is gone has nothing left.
func TestNothingIsLeftBehind(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	w, b := newWorld(), status.NewBoard()
	for range 500 {
		w.change(r, b)
	}
	for _, c := range someClusters {
		for _, u := range someBundles {
			b.Forget("cluster-"+c, u)
			b.DeleteBundle(ws(u))
		}
		b.DeleteCluster(ws(c))
	}
	if diff := cmp.Diff(picture(status.NewBoard()), picture(b)); diff != "" {
		t.Error(diff)
	}
	if n := b.Size(); n != 0 {
		t.Errorf("%d things are left", n)
	}
}

func BenchmarkEvent(b *testing.B) {
	const clusters, bundles = 10_000, 20
	for _, test := range []struct {
		name string
		base []modifier
	}{{"AllReady", nil}, {"AllWaiting", []modifier{unapplied}}} {
		b.Run(fmt.Sprintf("%s/%dx%d", test.name, clusters, bundles), func(b *testing.B) {
			before := heap()
			board := status.NewBoard()
			for i := range clusters {
				board.SetCluster(ws(numbered("c", i)), status.ClusterFacts{Groups: []types.NamespacedName{ws("all")}})
				for j := range bundles {
					board.Observe(deployment(numbered("b", j), numbered("c", i), test.base...))
				}
			}
			bytes := float64(heap()-before) / (clusters * bundles)
			r := rand.New(rand.NewSource(1))
			events := make([]*fleet.BundleDeployment, 10_000)
			for i := range events {
				change := []modifier{unready}
				if i%2 == 1 {
					change = test.base
				}
				events[i] = deployment(numbered("b", r.Intn(bundles)), numbered("c", r.Intn(clusters)), change...)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				board.Observe(events[i%len(events)])
			}
			b.ReportMetric(bytes, "B/deployment")
		})
	}
}

func BenchmarkRollUps(b *testing.B) {
	board := status.NewBoard()
	for i := range 10_000 {
		board.SetCluster(ws(numbered("c", i)), status.ClusterFacts{Groups: []types.NamespacedName{ws("all")}})
		board.Observe(deployment("web", numbered("c", i), failing("boom")))
	}
	b.Run("Bundle", func(b *testing.B) {
		for range b.N {
			board.Bundle(ws("web"))
		}
	})
	b.Run("GitRepo", func(b *testing.B) {
		for range b.N {
			board.GitRepo(ws("repo"), "")
		}
	})
	b.Run("ClusterGroup", func(b *testing.B) {
		for range b.N {
			board.ClusterGroup(ws("all"))
		}
	})
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
