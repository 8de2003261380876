package kube

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/content"
)

// slow is an API server that has nothing, and answers a write when it is let, or
// when nobody waits for the answer any more.
type slow struct {
	client.Client
	let   chan error
	asked int
}

func (s *slow) Create(ctx context.Context, _ client.Object, _ ...client.CreateOption) error {
	s.asked++
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-s.let:
		return err
	}
}

func (s *slow) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

// puts are the two ways in which a payload is stored.
var puts = map[string]func(*Store, context.Context) error{
	"by itself": func(s *Store, ctx context.Context) error {
		return s.putBlob(ctx, content.Blob{Ref: content.Ref{Name: "c-secret", Secret: true}}, "ns")
	},
	"with its chunks": func(s *Store, ctx context.Context) error {
		return s.Put(ctx, content.Encoded{Root: content.Blob{Ref: content.Ref{Name: "c-root"}}, Chunks: blobs(0, 2, 10)}, "ns")
	},
}

// TestWhoGivesUpStopsNobodyElse: two ask for one payload; the first of them ends.
func TestWhoGivesUpStopsNobodyElse(t *testing.T) {
	for name, put := range puts {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &slow{let: make(chan error)}
				store := New(server)
				first, giveUp := context.WithCancel(t.Context())
				ends := [2]chan error{make(chan error, 1), make(chan error, 1)}
				for i, ctx := range []context.Context{first, t.Context()} {
					go func() { ends[i] <- put(store, ctx) }()
					synctest.Wait()
				}
				giveUp()
				if err := <-ends[0]; !errors.Is(err, context.Canceled) {
					t.Errorf("who gave up gets %v", err)
				}
				synctest.Wait()
				select {
				case err := <-ends[1]:
					t.Fatalf("the other one gets %v", err)
				case server.let <- nil:
				}
				if err := <-ends[1]; err != nil {
					t.Errorf("the other one gets %v", err)
				}
				if err := put(store, t.Context()); err != nil || server.asked != 1 {
					t.Errorf("stored: %v, the server was asked %d times", err, server.asked)
				}
			})
		})
	}
}

// TestAPutThatFailed is tried again by the next, and one that hangs ends.
func TestAPutThatFailed(t *testing.T) {
	for name, put := range puts {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &slow{let: make(chan error, 1)}
				store := New(server)
				away := errors.New("the API server is away")
				server.let <- away
				if err := put(store, t.Context()); !errors.Is(err, away) {
					t.Errorf("got %v", err)
				}
				if err := put(store, t.Context()); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("of a server that hangs: %v", err)
				}
				server.let <- nil
				if err := put(store, t.Context()); err != nil {
					t.Errorf("in the end: %v", err)
				}
			})
		})
	}
}
