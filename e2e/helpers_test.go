package e2e

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/lab"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

var errStillThere = errors.New("it is still there")

// deployment reads a Deployment that has the name of its namespace.
func (w *world) deployment(spoke, name string) (*appsv1.Deployment, error) {
	d := &appsv1.Deployment{}
	return d, w.spokes[spoke].Get(context.Background(), client.ObjectKey{Namespace: name, Name: name}, d)
}

func (w *world) deploymentLabel(spoke, name, want string) error {
	d, err := w.deployment(spoke, name)
	if err == nil && d.Spec.Template.Labels["value"] != want {
		err = fmt.Errorf("the label is %q, want %q", d.Spec.Template.Labels["value"], want)
	}
	return err
}

func (w *world) generation(t *testing.T, spoke, name string) int64 {
	t.Helper()
	d, err := w.deployment(spoke, name)
	if err != nil {
		t.Fatal(err)
	}
	return d.Generation
}

// offline waits until the hub calls a cluster offline, and checks that nothing
// of it counts as ready.
func (w *world) offline(t *testing.T, name string) {
	t.Helper()
	eventually(t, name+" is offline", func() error {
		c := &fleet.Cluster{}
		if err := w.hub.Get(t.Context(), client.ObjectKey{Namespace: registration, Name: name}, c); err != nil {
			return err
		}
		online := fleet.FindCondition(c.Status.Conditions, fleet.ConditionOnline)
		ready := fleet.FindCondition(c.Status.Conditions, fleet.ConditionReady)
		if online == nil || online.Status != metav1.ConditionFalse || ready == nil || ready.Status != metav1.ConditionUnknown || c.Status.Summary.Ready != 0 {
			return fmt.Errorf("online %+v, ready %+v, summary %+v", online, ready, c.Status.Summary)
		}
		return nil
	})
}

// kill ends a part of the lab without a chance to clean up.
func (w *world) kill(t *testing.T, unit string) {
	t.Helper()
	for _, u := range w.lab.Status().Units {
		if u.Name != unit {
			continue
		}
		for _, p := range u.Processes {
			if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	}
	eventually(t, unit+" is dead", func() error {
		for _, u := range w.lab.Status().Units {
			if u.Name == unit && u.State == lab.Running {
				return errors.New("it still runs")
			}
		}
		return nil
	})
}
