package rows

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/bench/meter"
	"github.com/flotilla-sh/flotilla/internal/bench/report"
	"github.com/flotilla-sh/flotilla/internal/bench/stage"
	"github.com/flotilla-sh/flotilla/internal/lab"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

const (
	// agentObjects is the number of objects of each bundle of the row agent.
	agentObjects = 10
	// calmAgent is how long an agent may take to do nothing.
	calmAgent = 3 * time.Second
)

var agent = Row{
	Name: "agent", N: 50,
	Title: "one real agent on a real cluster: N bundles of 10 objects, and drift",
	measure: func(ctx context.Context, r *Run) error {
		s, err := stage.Start(ctx, stage.Options{
			Bin: r.Bin, Heartbeat: r.Heartbeat, Log: r.Log, Spokes: []lab.Spoke{{Name: "spoke"}},
		})
		if err != nil {
			return err
		}
		defer func() { _ = s.Stop() }()
		spoke, err := s.Spoke("spoke")
		if err != nil {
			return err
		}
		return (&agentRun{Run: r, stage: s, spoke: spoke}).measure(ctx)
	},
}

// agentRun is one measurement of an agent.
type agentRun struct {
	*Run
	stage *stage.Stage
	spoke *stage.Spoke
}

func (a *agentRun) measure(ctx context.Context) error {
	for _, step := range []func(context.Context) error{a.idle, a.install, a.upgrade, a.resync, a.drift, a.full} {
		if err := a.stage.Rest(ctx); err != nil {
			return err
		}
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// onSpoke counts what the agent asks of its own cluster.
func (a *agentRun) onSpoke(name string, use meter.Use) float64 {
	n := use.Requests.Sum(func(r meter.Request) bool { return r.Agent == meter.FleetAgent && !r.Background() })
	a.phase(name+", on the spoke", use)
	return float64(n)
}

func (a *agentRun) idle(ctx context.Context) error {
	if err := a.spoke.Meter.Quiet(ctx, calmAgent, meter.Request.Flotilla); err != nil {
		return err
	}
	return a.memory("idle", "≤ 15", "99")
}

func (a *agentRun) memory(when, goal, peer string) error {
	m, err := meter.MemoryOf(a.spoke.AgentPID)
	if err != nil {
		return err
	}
	a.record(report.Figure{Name: "agent memory, " + when + ", anonymous", Unit: "MB", Value: float64(m.Anonymous) / 1e6, Goal: goal, Floor: 9})
	a.record(report.Figure{Name: "agent memory, " + when + ", resident", Unit: "MB", Value: float64(m.Resident) / 1e6, Peer: peer})
	a.record(report.Figure{Name: "agent memory, " + when + ", peak resident", Unit: "MB", Value: float64(m.Peak) / 1e6})
	return nil
}

// bundle is one of the agent's bundles.
func (a *agentRun) bundle(i int) stage.Bundle {
	b := small("bundle", i)
	b.Files = map[string]string{}
	for o := range agentObjects {
		name := fmt.Sprintf("%s-%d", b.Name, o)
		b.Files[name+".yaml"] = stage.ConfigMap(name, "wanted")
	}
	return b
}

func (a *agentRun) install(ctx context.Context) error {
	use, err := a.rollout(ctx, a.stage.Create)
	if err != nil {
		return err
	}
	a.record(report.Figure{Name: "spoke requests of a 10-object install", Value: a.onSpoke("install", use), Floor: 11, Goal: "≤ 15", Peer: "48", Exact: true})
	return nil
}

// upgrade changes each object of the bundle.
func (a *agentRun) upgrade(ctx context.Context) error {
	use, err := a.rollout(ctx, func(ctx context.Context, b stage.Bundle) error {
		for name, text := range b.Files {
			b.Files[name] = strings.Replace(text, "wanted", "wanted now", 1)
		}
		return a.stage.Update(ctx, b)
	})
	if err != nil {
		return err
	}
	a.record(report.Figure{Name: "spoke requests of a 10-object upgrade", Value: a.onSpoke("upgrade", use), Floor: 11, Exact: true})
	return nil
}

// rollout does something to the first bundle, and returns what it costs until
// all is ready and at rest.
func (a *agentRun) rollout(ctx context.Context, act func(context.Context, stage.Bundle) error) (meter.Use, error) {
	mark, err := a.spoke.Meter.Begin(ctx)
	if err != nil {
		return meter.Use{}, err
	}
	b := a.bundle(0)
	if err := act(ctx, b); err != nil {
		return meter.Use{}, err
	}
	if _, err := a.stage.AwaitReady(ctx, stage.Want{b.Name: 1}); err != nil {
		return meter.Use{}, err
	}
	if err := a.spoke.Meter.Quiet(ctx, calmAgent, meter.Request.Flotilla); err != nil {
		return meter.Use{}, err
	}
	return a.spoke.Meter.End(ctx, mark)
}

// resync makes the hub say again what is there already.
func (a *agentRun) resync(ctx context.Context) error {
	mark, err := a.spoke.Meter.Begin(ctx)
	if err != nil {
		return err
	}
	d, err := a.deployment(ctx, a.bundle(0).Name)
	if err != nil {
		return err
	}
	touched := []byte(`{"metadata":{"annotations":{"bench":"touched"}}}`)
	if err := a.stage.Hub.Patch(ctx, d, client.RawPatch(types.MergePatchType, touched)); err != nil {
		return err
	}
	if err := a.spoke.Meter.Quiet(ctx, calmAgent, meter.Request.Flotilla); err != nil {
		return err
	}
	use, err := a.spoke.Meter.End(ctx, mark)
	if err != nil {
		return err
	}
	a.record(report.Figure{Name: "spoke requests of a resync without change", Value: a.onSpoke("resync", use), Goal: "0", Exact: true})
	return nil
}

// drift changes one object after the other, and waits until the hub shows it.
func (a *agentRun) drift(ctx context.Context) error {
	bundle := a.bundle(0).Name
	var total time.Duration
	mark, err := a.spoke.Meter.Begin(ctx)
	if err != nil {
		return err
	}
	for i := range agentObjects {
		took, err := a.edit(ctx, bundle, i)
		if err != nil {
			return err
		}
		total += took
	}
	if err := a.spoke.Meter.Quiet(ctx, calmAgent, meter.Request.Flotilla); err != nil {
		return err
	}
	use, err := a.spoke.Meter.End(ctx, mark)
	if err != nil {
		return err
	}
	a.record(report.Figure{Name: "an edit on the spoke → drift shown on the hub", Unit: "s", Value: total.Seconds() / agentObjects, Goal: "< 1", Peer: "5.1"})
	a.record(report.Figure{Name: "spoke requests for an edit", Value: a.onSpoke("ten edits", use) / agentObjects, Goal: "≤ 3", Peer: "19", Exact: true})
	return nil
}

// edit changes object i and waits until the hub knows of it and of those
// before it.
func (a *agentRun) edit(ctx context.Context, bundle string, i int) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	d, err := a.deployment(ctx, bundle)
	if err != nil {
		return 0, err
	}
	w, err := a.stage.Hub.Watch(ctx, &fleet.BundleDeploymentList{}, client.InNamespace(d.Namespace))
	if err != nil {
		return 0, err
	}
	defer w.Stop()
	began := time.Now()
	if err := setValue(ctx, a.spoke.Kube, fmt.Sprintf("%s-%d", bundle, i), "changed"); err != nil {
		return 0, err
	}
	for event := range w.ResultChan() {
		if d, ok := event.Object.(*fleet.BundleDeployment); ok && d.Name == bundle && d.Status.ResourceCounts.Modified == i+1 {
			return time.Since(began), nil
		}
	}
	return 0, fmt.Errorf("drift of object %d of %s was not seen within a minute", i, bundle)
}

func setValue(ctx context.Context, kube kubernetes.Interface, name, value string) error {
	patch := []byte(`{"data":{"value":"` + value + `"}}`)
	_, err := kube.CoreV1().ConfigMaps(corev1.NamespaceDefault).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "someone"})
	return err
}

func (a *agentRun) deployment(ctx context.Context, bundle string) (*fleet.BundleDeployment, error) {
	list := &fleet.BundleDeploymentList{}
	if err := a.stage.Hub.List(ctx, list, client.MatchingLabels{fleet.BundleLabel: bundle}); err != nil {
		return nil, err
	}
	if len(list.Items) != 1 {
		return nil, fmt.Errorf("there are %d deployments of %s, want 1", len(list.Items), bundle)
	}
	return &list.Items[0], nil
}

// full measures the agent with all of its bundles.
func (a *agentRun) full(ctx context.Context) error {
	want := stage.Want{}
	for i := 1; i < a.N; i++ {
		b := a.bundle(i)
		if err := a.stage.Create(ctx, b); err != nil {
			return err
		}
		want[b.Name] = 1
	}
	if _, err := a.stage.AwaitReady(ctx, want); err != nil {
		return err
	}
	if err := a.spoke.Meter.Quiet(ctx, calmAgent, meter.Request.Flotilla); err != nil {
		return err
	}
	return a.memory(fmt.Sprintf("%d × %d objects", a.N, agentObjects), "≤ 30", "122, peak 198")
}
