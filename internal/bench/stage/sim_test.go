package stage_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flotilla-sh/flotilla/internal/bench/meter"
	"github.com/flotilla-sh/flotilla/internal/bench/stage"
	"github.com/flotilla-sh/flotilla/internal/lab"
	"github.com/flotilla-sh/flotilla/internal/lab/labtest"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// TestSimulatedAgentDoesWhatTheAgentDoes gives one bundle to a cluster with
// the real agent and to one with a simulated one, and compares what both have
// asked of the hub and what they have reported.
func TestSimulatedAgentDoesWhatTheAgentDoes(t *testing.T) {
	labtest.Skip(t)
	klog.SetLogger(logr.Discard())
	log.SetLogger(logr.Discard())
	const heartbeat = time.Hour
	s, err := stage.Start(t.Context(), stage.Options{
		Bin: labtest.Bin(), Heartbeat: heartbeat, Log: t.Logf, Spokes: []lab.Spoke{{Name: "real"}},
		AgentArgs: []string{"--heartbeat=" + heartbeat.String()},
	})
	must(t, err)
	defer s.Stop()
	must(t, s.Register(t.Context(), 1))
	must(t, s.StartAgents(t.Context(), 0))
	must(t, s.Rest(t.Context()))
	began, err := s.Meter.Begin(t.Context())
	must(t, err)

	for i, act := range []func(stage.Bundle) error{
		func(b stage.Bundle) error { return s.Create(t.Context(), b) },
		func(b stage.Bundle) error { return s.Update(t.Context(), b) },
	} {
		must(t, act(stage.Bundle{Name: "bundle", Files: map[string]string{
			"a.yaml": stage.ConfigMap("a", fmt.Sprint(i)), "b.yaml": stage.ConfigMap("b", "same"),
		}}))
		_, err = s.AwaitReady(t.Context(), stage.Want{"bundle": 2})
		must(t, err)
		must(t, s.Rest(t.Context()))
	}
	compareStatus(t, s)
	users := namespaces(t, s)
	start, err := s.Meter.ByUser(meter.Mark{})
	must(t, err)
	if diff := cmp.Diff(kinds(start[users["real"]]), kinds(start[users["cluster-0000"]])); diff != "" {
		t.Errorf("kinds of requests since the start of the real (-) and the simulated (+) agent: %s", diff)
	}
	since, err := s.Meter.ByUser(began)
	must(t, err)
	real, simulated := granted(since[users["real"]]), granted(since[users["cluster-0000"]])
	if diff := cmp.Diff(real, simulated); diff != "" || len(real) == 0 {
		t.Errorf("what the real (-) and the simulated (+) agent asked of the hub, %d kinds of requests: %s", len(real), diff)
	}
	reports := meter.Request{Agent: meter.FleetAgent, Verb: "patch", Resource: "bundledeployments/status", OK: true}
	if real[reports] != 2 {
		t.Errorf("%d reports, want one for the create and one for the update", real[reports])
	}
}

// granted are the requests that were not refused: on a busy machine either
// agent may ask for something a moment before it is there, and ask again.
func granted(c meter.Counts) meter.Counts {
	out := meter.Counts{}
	for r, n := range c {
		if r.OK {
			out[r] = n
		}
	}
	return out
}

// kinds are the requests that were made at least once.
func kinds(c meter.Counts) map[meter.Request]bool {
	out := map[meter.Request]bool{}
	for r := range granted(c) {
		out[r] = true
	}
	return out
}

// namespaces returns the user of each cluster's agent.
func namespaces(t *testing.T, s *stage.Stage) map[string]string {
	t.Helper()
	list := &fleet.ClusterList{}
	must(t, s.Hub.List(t.Context(), list))
	out := map[string]string{}
	for i := range list.Items {
		out[list.Items[i].Name] = "system:serviceaccount:" + list.Items[i].Status.Namespace + ":" + fleet.AgentName
	}
	return out
}

// compareStatus compares what both agents have reported.
func compareStatus(t *testing.T, s *stage.Stage) {
	t.Helper()
	list := &fleet.BundleDeploymentList{}
	must(t, s.Hub.List(t.Context(), list, client.MatchingLabels{fleet.BundleLabel: "bundle"}))
	if len(list.Items) != 2 {
		t.Fatalf("%d deployments", len(list.Items))
	}
	times := cmpopts.IgnoreFields(fleet.Condition{}, "LastUpdateTime", "LastTransitionTime")
	if diff := cmp.Diff(list.Items[0].Status, list.Items[1].Status, times); diff != "" {
		t.Errorf("the reports differ: %s", diff)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
