package soak_test

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/lab"
	"github.com/flotilla-sh/flotilla/internal/lab/labtest"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

var realSeeds = flag.Int("real", 1, "number of seeds to run on real API servers")

// actual is the pace on real API servers: every second counts.
var actual = pace{
	step: 4 * time.Second, fault: 4 * time.Second, converge: 3 * time.Minute, look: 500 * time.Millisecond,
	quiet: 4 * time.Second, poll: time.Second, restart: 300 * time.Millisecond, settle: 500 * time.Millisecond, work: time.Second,
}

// TestRealSeeds runs the same scripts and faults on real API servers.
func TestRealSeeds(t *testing.T) {
	s := realServers(t, *realSeeds, lab.Spoke{Name: "one"}, lab.Spoke{Name: "two"})
	first, last := 0, *realSeeds
	if *replay >= 0 {
		first, last = *replay, *replay+1
	}
	for n := first; n < last; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			w := newWorld(t, uint64(n), fmt.Sprintf("s%d", n), s, actual)
			w.start()
			w.play()
			w.stop()
			w.end()
			w.leave()
		})
	}
}

// realServers starts API servers for as many runs as are wanted, until the end
// of the test.
func realServers(t *testing.T, wanted int, spokes ...lab.Spoke) servers {
	t.Helper()
	if wanted == 0 {
		t.Skip("none is wanted")
	}
	l := labtest.Start(t, spokes...)
	s := servers{hub: configOf(t, l.Status().Hub.Kubeconfig)}
	for _, spoke := range l.Status().Spokes {
		s.spokes = append(s.spokes, configOf(t, spoke.Kubeconfig))
	}
	w := &world{t: t}
	w.must(labtest.InstallHub(t.Context(), w.client(s.hub)))
	return s
}

func configOf(t *testing.T, kubeconfig string) *rest.Config {
	t.Helper()
	config, err := labtest.Config(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// leave takes what a world had on the hub out of the way of the next one, as
// nobody runs any more who would do it.
func (w *world) leave() {
	ctx := context.Background()
	lists := []client.ObjectList{&fleet.GitRepoList{}, &fleet.BundleDeploymentList{}, &fleet.BundleList{}, &fleet.ClusterList{}}
	for _, list := range lists {
		w.must(w.direct.hub.List(ctx, list))
		w.must(w.erased(ctx, list))
	}
}

func (w *world) erased(ctx context.Context, list client.ObjectList) error {
	var objects []client.Object
	switch l := list.(type) {
	case *fleet.GitRepoList:
		for i := range l.Items {
			objects = append(objects, &l.Items[i])
		}
	case *fleet.BundleDeploymentList:
		for i := range l.Items {
			objects = append(objects, &l.Items[i])
		}
	case *fleet.BundleList:
		for i := range l.Items {
			objects = append(objects, &l.Items[i])
		}
	case *fleet.ClusterList:
		for i := range l.Items {
			objects = append(objects, &l.Items[i])
		}
	}
	for _, obj := range objects {
		err := w.direct.hub.Patch(ctx, obj, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
		if err == nil {
			err = w.direct.hub.Delete(ctx, obj)
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}
