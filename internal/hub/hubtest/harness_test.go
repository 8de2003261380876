// Package hubtest_test tests what the parts of the hub do to a real API server.
package hubtest_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flotilla-sh/flotilla/internal/hub"
	"github.com/flotilla-sh/flotilla/internal/lab"
	"github.com/flotilla-sh/flotilla/internal/lab/labtest"
)

var bin = flag.String("bin", "../../../bin", "directory of the built programs")

// server is one real API server for all tests.
var server struct {
	config *rest.Config
	client client.Client
	// apiserver is the id of its process.
	apiserver int
	why       string
}

func TestMain(m *testing.M) {
	flag.Parse()
	klog.SetLogger(logr.Discard())
	log.SetLogger(logr.Discard())
	os.Exit(run(m))
}

func run(m *testing.M) int {
	programs := lab.ProgramsIn(*bin)
	if testing.Short() {
		server.why = "needs a real API server, which takes seconds"
		return m.Run()
	}
	if _, err := os.Stat(programs.ControlPlane); err != nil {
		server.why = fmt.Sprintf("needs a real API server: run `make controlplane` first (%v)", err)
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "hub")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	l, err := lab.Start(context.Background(), lab.Options{Dir: filepath.Join(dir, "lab"), Programs: programs})
	if err != nil {
		panic(err)
	}
	defer func() { _ = l.Stop() }()
	if err := connect(l.Status().Hub.Kubeconfig); err != nil {
		panic(err)
	}
	for _, unit := range l.Status().Units {
		for _, p := range unit.Processes {
			if p.Name == "hub-kube-apiserver" {
				server.apiserver = p.PID
			}
		}
	}
	return m.Run()
}

func connect(kubeconfig string) error {
	config, err := labtest.Config(kubeconfig)
	if err != nil {
		return err
	}
	server.config = config
	scheme, err := hub.Scheme()
	if err != nil {
		return err
	}
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return err
	}
	if server.client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	return labtest.InstallHub(context.Background(), server.client)
}

// poll asks until the answer is yes.
func poll(done func() (bool, error)) error {
	deadline := time.Now().Add(20 * time.Second)
	for time.Now().Before(deadline) {
		if ok, err := done(); ok || err != nil {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
	return fmt.Errorf("still not after 20s")
}

// world is a namespace of the API server and a clock.
type world struct {
	*testing.T
	client    client.Client
	ctx       context.Context
	namespace string
	clock     *clocktesting.FakeClock
}

var worlds atomic.Int32

func newWorld(t *testing.T) *world {
	t.Helper()
	if server.why != "" {
		t.Skip(server.why)
	}
	w := &world{
		T: t, client: server.client, ctx: t.Context(), namespace: fmt.Sprintf("world-%d", worlds.Add(1)),
		clock: clocktesting.NewFakeClock(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)),
	}
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}})
	return w
}

func (w *world) create(obj client.Object) {
	w.Helper()
	w.must(w.client.Create(w.ctx, obj))
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// exists reads obj again and tells whether it is there.
func (w *world) exists(obj client.Object) bool {
	w.Helper()
	err := w.client.Get(w.ctx, client.ObjectKeyFromObject(obj), obj)
	if apierrors.IsNotFound(err) {
		return false
	}
	w.must(err)
	return true
}

func (w *world) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.namespace, Name: name}
}
