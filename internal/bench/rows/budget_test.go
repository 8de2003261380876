package rows

import (
	"encoding/json"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flotilla-sh/flotilla/internal/bench/stage"
	"github.com/flotilla-sh/flotilla/internal/lab/labtest"
)

// budgetsFile says what a deployment may cost in a fleet of 100 clusters. It
// is lowered by hand when something got cheaper; some room is left for writes
// that meet on a slow machine and are tried again.
const budgetsFile = "budgets.json"

// TestBudgets counts requests and etcd puts and fails when there are more of
// them than are recorded. Times are not judged.
func TestBudgets(t *testing.T) {
	labtest.Skip(t)
	klog.SetLogger(logr.Discard())
	log.SetLogger(logr.Discard())
	const clusters, each = 100, stage.GroupSize
	o := Options{Bin: labtest.Bin(), Heartbeat: time.Hour, Log: t.Logf}
	one := &Run{Options: o, N: clusters}
	s, err := one.stage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	if err := one.populate(t.Context(), s, clusters); err != nil {
		t.Fatal(err)
	}
	if err := one.rollout(t.Context(), s, stage.Raw{}, rollout{clusters: clusters, bundles: many("one", 1)}); err != nil {
		t.Fatal(err)
	}
	ten := &Run{Options: o, N: clusters}
	groups := many("ten", clusters/each)
	for i := range groups {
		groups[i].Clusters = map[string]string{stage.GroupLabel: strconv.Itoa(i)}
	}
	if err := ten.rollout(t.Context(), s, stage.Raw{}, rollout{clusters: clusters, bundles: groups, each: each}); err != nil {
		t.Fatal(err)
	}
	budgets := readBudgets(t)
	one.judge(t, budgets["one bundle on 100 clusters"])
	ten.judge(t, budgets["ten bundles on 10 clusters each"])
}

func readBudgets(t *testing.T) map[string]map[string]float64 {
	t.Helper()
	data, err := os.ReadFile(budgetsFile)
	if err != nil {
		t.Fatal(err)
	}
	var budgets map[string]map[string]float64
	if err := json.Unmarshal(data, &budgets); err != nil {
		t.Fatalf("%s: %v", budgetsFile, err)
	}
	return budgets
}

// judge compares the counts of a run with its budget. Roll-ups are judged
// apart: the hub gathers what happens within a time, so that a slow machine
// writes more of them.
func (r *Run) judge(t *testing.T, budget map[string]float64) {
	t.Helper()
	if len(budget) == 0 {
		t.Fatalf("%s has no budget for this", budgetsFile)
	}
	counted := map[string]float64{}
	for _, f := range r.Figures {
		counted[f.Name] = f.Value
	}
	for _, phase := range []string{"create", "update"} {
		rollUps, puts := phase+": of them roll-ups", phase+": of them for roll-ups"
		counted[phase+": requests but roll-ups"] = counted[phase+": requests per deployment"] - counted[rollUps]
		counted[phase+": etcd puts but roll-ups"] = counted[phase+": etcd puts per deployment"] - counted[puts]
		counted[phase+": roll-ups"] = counted[rollUps]
	}
	for name, most := range budget {
		value, ok := counted[name]
		t.Logf("%s: %.3f of %.3f", name, value, most)
		if !ok || value > most {
			t.Errorf("%s: %.3f for each deployment, and %s allows %.3f: find what asks more of the API server, or record why it may", name, value, budgetsFile, most)
		}
	}
	if !t.Failed() {
		return
	}
	for _, phase := range r.Phases {
		for _, row := range phase.Requests {
			t.Logf("%s: %5d × %s %s %s, ok: %v", phase.Name, row.N, row.Agent, row.Verb, row.Resource, row.OK)
		}
	}
}
