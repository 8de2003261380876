package gauges_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/hub/gauges"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// cached answers lists; bundles cannot be read yet.
type cached struct{ client.Reader }

func (cached) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	meta := func(namespace string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace} }
	is := func(status metav1.ConditionStatus, reason string) []fleet.Condition {
		return []fleet.Condition{{Type: fleet.ConditionReady, Status: status, Reason: reason}}
	}
	switch l := list.(type) {
	case *fleet.GitRepoList:
		l.Items = make([]fleet.GitRepo, 4)
		for i, conditions := range [][]fleet.Condition{is("True", "Ready"), is("True", ""), is("False", "GitUnreachable"), nil} {
			l.Items[i].ObjectMeta, l.Items[i].Status.Conditions = meta("a"), conditions
		}
	case *fleet.HelmOpList:
		l.Items = make([]fleet.HelmOp, 1)
		l.Items[0].ObjectMeta, l.Items[0].Status.Conditions = meta("a"), is("False", "ChartNotFound")
	case *fleet.ClusterList:
		l.Items = make([]fleet.Cluster, 3)
		for i, at := range []string{"a", "a", "b"} {
			l.Items[i].ObjectMeta, l.Items[i].Status.Conditions = meta(at), is("False", "ErrApplied")
			if online := []metav1.ConditionStatus{"", "False", "True"}[i]; online != "" {
				l.Items[i].Status.Conditions = append(l.Items[i].Status.Conditions, fleet.Condition{Type: fleet.ConditionOnline, Status: online})
			}
			l.Items[i].Status.Summary = fleet.BundleSummary{Ready: i, Offline: 1, DesiredReady: i + 1}
		}
	default:
		return errors.New("the cache is not there yet")
	}
	return nil
}

func TestCounts(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	for range 2 {
		if err := gauges.Register(registry, cached{}); err != nil {
			t.Fatal(err)
		}
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			got = append(got, fmt.Sprintf("%s %s %g", strings.TrimPrefix(family.GetName(), "flotilla_hub_"), strings.Join(labels, " "), m.GetGauge().GetValue()))
		}
	}
	want := []string{
		"clusters a NeverSeen 1", "clusters a Offline 1", "clusters b ErrApplied 1",
		"deployments a Offline 2", "deployments a Ready 1", "deployments b Offline 1", "deployments b Ready 2",
		"gitrepos a GitUnreachable 1", "gitrepos a Ready 2", "gitrepos a Unknown 1", "helmops a ChartNotFound 1",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
