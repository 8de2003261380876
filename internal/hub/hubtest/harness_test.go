// Package hubtest_test tests what the parts of the hub do to a real API server.
package hubtest_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flotilla-sh/flotilla/internal/lab/labtest"
)

// server is one real API server for all tests.
var server struct {
	config *rest.Config
	client client.Client
	// apiserver is the id of its process.
	apiserver int
}

func TestMain(m *testing.M) {
	flag.Parse()
	klog.SetLogger(logr.Discard())
	log.SetLogger(logr.Discard())
	os.Exit(labtest.Main(m, func(s labtest.Server) { server.config, server.client, server.apiserver = s.Config, s.Client, s.PID }))
}

// poll asks until the answer is yes.
func poll(done func() (bool, error)) error {
	return wait.PollUntilContextTimeout(context.Background(), 5*time.Millisecond, 2*time.Minute, true,
		func(context.Context) (bool, error) { return done() })
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
	labtest.Skip(t)
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
