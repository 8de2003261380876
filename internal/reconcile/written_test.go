package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/apireq"
	"github.com/flotilla-sh/flotilla/internal/fault"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// server has one Cluster, and a cache that is as far behind as a test wants it.
type server struct {
	client.Client
	live, cached int
	patches      int
	answer       error // of the next patch, which is done where it is not refused
}

func (s *server) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	obj.SetResourceVersion(strconv.Itoa(s.cached))
	return nil
}

func (s *server) GroupVersionKindFor(runtime.Object) (schema.GroupVersionKind, error) {
	return fleet.SchemeGroupVersion.WithKind("Cluster"), nil
}

func (s *server) Status() client.SubResourceWriter { return writer{s: s} }

type writer struct {
	client.SubResourceWriter
	s *server
}

func (w writer) Patch(_ context.Context, obj client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	w.s.patches++
	data, err := patch.Data(obj)
	if err != nil {
		return err
	}
	content := &fleet.Cluster{}
	status, err := decode(data, content)
	if err != nil {
		return err
	}
	if content.ResourceVersion != strconv.Itoa(w.s.live) {
		return conflict
	}
	answer := w.s.answer
	w.s.answer = nil
	if answer != nil && apireq.Refused(answer) {
		return answer
	}
	if status {
		w.s.live++
	}
	obj.SetResourceVersion(strconv.Itoa(w.s.live))
	return answer
}

var (
	conflict = apierrors.NewConflict(schema.GroupResource{Group: fleet.Group, Resource: "clusters"}, "a", errors.New("changed"))
	lost     = syscall.ECONNRESET
)

// wrote is a server that a controller has written to, with that answer, what the
// controller knows of it, and how it reads the object from its cache.
func wrote(t *testing.T, answer error) (*server, *Written, func() *fleet.Cluster) {
	t.Helper()
	s, written := &server{live: 1, cached: 1, answer: answer}, &Written{}
	read := func() *fleet.Cluster {
		return &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a", UID: "u", ResourceVersion: strconv.Itoa(s.cached)}}
	}
	cluster := read()
	p := written.Patcher(s, cluster)
	cluster.Status.Namespace = "there"
	if err := p.Status(t.Context(), cluster); !errors.Is(err, answer) {
		t.Fatalf("the write before: %v", err)
	}
	return s, written, read
}

// TestNothingToWrite: what a cache that is behind has is no reason to write
// nothing.
func TestNothingToWrite(t *testing.T) {
	for name, tt := range map[string]struct {
		answer error // to the write before
		catch  bool  // the cache has it
		want   func(error) bool
		asks   int
	}{
		"the cache has the last write":          {nil, true, func(err error) bool { return err == nil }, 0},
		"the cache is behind":                   {nil, false, func(err error) bool { return fault.KindOf(err) == fault.Waiting }, 0},
		"the last write was refused":            {conflict, false, func(err error) bool { return err == nil }, 0},
		"an answer was lost, and it was done":   {lost, false, apierrors.IsConflict, 1},
		"an answer was lost, the cache has it":  {lost, true, func(err error) bool { return err == nil }, 1},
		"a server error leaves it open as well": {apierrors.NewInternalError(errors.New("x")), false, apierrors.IsConflict, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s, written, read := wrote(t, tt.answer)
			if tt.catch {
				s.cached = s.live
			}
			s.patches = 0
			cluster := read() // as it was wanted before, and is again
			if err := written.Patcher(s, cluster).Status(t.Context(), cluster); !tt.want(err) {
				t.Errorf("nothing to write: %v", err)
			}
			if s.patches != tt.asks {
				t.Errorf("%d requests, want %d", s.patches, tt.asks)
			}
		})
	}
}

// TestSomethingElseToWrite: what differs from a state that is behind is not all
// that differs from what there is.
func TestSomethingElseToWrite(t *testing.T) {
	waits := func(err error) bool { return fault.KindOf(err) == fault.Waiting }
	fine := func(err error) bool { return err == nil }
	for name, tt := range map[string]struct {
		answer error // to the write before
		caught bool  // the cache has it when the object is read
		later  bool  // the cache has it when the object is written
		want   func(error) bool
	}{
		"the cache has the last write":                 {nil, true, true, fine},
		"the cache is behind":                          {nil, false, false, waits},
		"the cache catches up meanwhile":               {nil, false, true, waits},
		"the last write was refused":                   {conflict, false, false, fine},
		"an answer was lost":                           {lost, false, false, apierrors.IsConflict},
		"an answer was lost, the cache catches up":     {lost, false, true, apierrors.IsConflict},
		"an answer was lost, the cache had it in time": {lost, true, true, fine},
	} {
		t.Run(name, func(t *testing.T) {
			s, written, read := wrote(t, tt.answer)
			if tt.caught {
				s.cached = s.live
			}
			cluster := read()
			p := written.Patcher(s, cluster)
			if tt.later {
				s.cached = s.live
			}
			cluster.Status.UnknownDeployments = 7
			if err := p.Status(t.Context(), cluster); !tt.want(err) {
				t.Errorf("something else: %v", err)
			}
		})
	}
}

// decode reads a patch, and tells whether it is about the status.
func decode(data []byte, into *fleet.Cluster) (bool, error) {
	parts := map[string]json.RawMessage{}
	if err := json.Unmarshal(data, &parts); err != nil {
		return false, err
	}
	return parts["status"] != nil, json.Unmarshal(data, into)
}
