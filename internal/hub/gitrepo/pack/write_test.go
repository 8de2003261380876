package pack

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/bundle"
	"github.com/flotilla-sh/flotilla/internal/content"
	"github.com/flotilla-sh/flotilla/internal/content/kube"
	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/hub/bundle/sources"
	"github.com/flotilla-sh/flotilla/internal/hub/bundle/write"
	"github.com/flotilla-sh/flotilla/internal/source"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// server has nothing, and takes a while for each write; the first bundle it
// refuses at once.
type server struct {
	client.Client
	mu      sync.Mutex
	bundles []string
}

var errAway = errors.New("the API server is away")

func (s *server) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func (s *server) Create(ctx context.Context, obj client.Object, _ ...client.CreateOption) error {
	b, ok := obj.(*fleet.Bundle)
	if ok && b.Name == "a" {
		return errAway
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Second):
	}
	if ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.bundles = append(s.bundles, b.Name)
	}
	return nil
}

// TestOneBundleThatFailsStopsNoOther: the other directories of a GitRepo go on,
// and it is tried again.
func TestOneBundleThatFailsStopsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		store, key := kube.New(s), content.Key("key")
		c := &Controller{Bundles: &write.Writer{Client: s, Live: s, Store: store, Sources: sources.New(store, key)}}
		var drafts []bundle.Draft
		for _, name := range []string{"a", "b", "c"} {
			drafts = append(drafts, bundle.Draft{Name: name, Files: []source.File{{Path: "a.yaml", Data: []byte("of " + name)}}})
		}
		repo := &fleet.GitRepo{}
		repo.Namespace, repo.Name = "fleet-default", "repo"
		if err := c.write(t.Context(), repo, "commit", drafts); err != nil {
			t.Errorf("all have the error %v", err)
		}
		if err := drafts[0].Err; !errors.Is(err, errAway) || fault.KindOf(err) != fault.Transient || drafts[1].Err != nil || drafts[2].Err != nil {
			t.Errorf("the errors are %v, %v, %v", err, drafts[1].Err, drafts[2].Err)
		}
		slices.Sort(s.bundles)
		if !slices.Equal(s.bundles, []string{"b", "c"}) {
			t.Errorf("written are %v", s.bundles)
		}
	})
}

func TestNoProblems(t *testing.T) {
	if err := problems([]bundle.Draft{{Name: "a"}, {Name: "b"}}, nil); err != nil {
		t.Errorf("nothing is wrong, and it says %#v", err)
	}
}
