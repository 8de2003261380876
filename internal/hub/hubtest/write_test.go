package hubtest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/flotilla-sh/flotilla/internal/content/kube"
	"github.com/flotilla-sh/flotilla/internal/hub/bundle/sources"
	"github.com/flotilla-sh/flotilla/internal/hub/bundle/write"
	"github.com/flotilla-sh/flotilla/internal/hub/content/gc"
	"github.com/flotilla-sh/flotilla/internal/source"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// writing is a world with a writer of Bundles.
type writing struct {
	*world
	writer *write.Writer
	counts *counter
}

func newWriting(t *testing.T) *writing {
	t.Helper()
	w := newWorld(t)
	c := &counter{Client: w.client}
	store := kube.New(c)
	return &writing{w, &write.Writer{Client: c, Live: c, Store: store, Sources: sources.New(store, w.key())}, c}
}

// write returns how many writes a Bundle with these values and 25 files took.
func (w *writing) write(text string, values map[string]any) int32 {
	w.Helper()
	b := &fleet.Bundle{ObjectMeta: w.meta("app")}
	if values != nil {
		b.Spec.Helm = &fleet.HelmOptions{Values: &fleet.GenericMap{Data: values}}
	}
	var files []source.File
	for i := range 25 {
		files = append(files, source.File{Path: fmt.Sprintf("%02d.yaml", i), Data: []byte(text)})
	}
	before := w.counts.writes.Load()
	owner := write.Owner{Kind: "GitRepo", Namespace: w.namespace, Name: "repo", Label: fleet.RepoLabel}
	w.must(w.writer.Write(w.ctx, owner, b, files))
	return w.counts.writes.Load() - before
}

// values counts the Secrets with values.
func (w *writing) values() int {
	w.Helper()
	list := &corev1.SecretList{}
	w.must(w.client.List(w.ctx, list, client.InNamespace(w.namespace), client.MatchingLabels{fleet.BundleLabel: "app"}))
	return len(list.Items)
}

func TestWritesOfABundle(t *testing.T) {
	w := newWriting(t)
	one, two := map[string]any{"a": "1"}, map[string]any{"a": "2"}
	for _, step := range []struct {
		name          string
		text          string
		values        map[string]any
		writes        int32
		valuesSecrets int
	}{
		{"new: its source and itself", "a", nil, 2, 0},
		{"the same again", "a", nil, 0, 0},
		{"another source", "b", nil, 2, 0},
		{"values: these and itself", "b", one, 2, 1},
		{"the same values again", "b", one, 0, 1},
		{"other values: the old ones go", "b", two, 3, 1},
		{"no values: the old ones go", "b", nil, 2, 0},
		{"an older source, which is stored", "a", nil, 1, 0},
	} {
		if got := w.write(step.text, step.values); got != step.writes {
			t.Errorf("%s: %d writes, want %d", step.name, got, step.writes)
		}
		if got := w.values(); got != step.valuesSecrets {
			t.Errorf("%s: %d Secrets with values, want %d", step.name, got, step.valuesSecrets)
		}
	}
}

// behind is a client whose cache has an older state of a Bundle.
type behind struct {
	client.Client
	older *fleet.Bundle
}

func (b behind) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if into, ok := obj.(*fleet.Bundle); ok {
		b.older.DeepCopyInto(into)
		return nil
	}
	return b.Client.Get(ctx, key, obj, opts...)
}

// TestWriteOnACacheThatIsBehind goes back to what the cache still has: the event
// of the write between them must ask for another look.
func TestWriteOnACacheThatIsBehind(t *testing.T) {
	w := newWriting(t)
	w.write("a", nil)
	older := &fleet.Bundle{ObjectMeta: w.meta("app")}
	w.exists(older)
	w.write("b", nil)
	newer := &fleet.Bundle{ObjectMeta: w.meta("app")}
	w.exists(newer)
	event := event.UpdateEvent{ObjectOld: older, ObjectNew: newer}
	if w.writer.Changes().Update(event) {
		t.Error("the writer's own change asks for a look")
	}
	w.writer.Client = behind{w.client, older}
	w.write("a", nil)
	if !w.writer.Changes().Update(event) {
		t.Error("a Bundle that is not as wanted asks for no look")
	}
}

// TestSourceIsTheSameFromMemory reads what was just written, and what another
// process reads.
func TestSourceIsTheSameFromMemory(t *testing.T) {
	w := newWriting(t)
	for name, text := range map[string]string{"small": "kind: ConfigMap\n", "in chunks": string(make([]byte, 8<<10))} {
		t.Run(name, func(t *testing.T) {
			w.write(text, nil)
			b := &fleet.Bundle{ObjectMeta: w.meta("app")}
			w.exists(b)
			reads := w.counts.reads.Load()
			near, err := w.writer.Sources.Of(w.ctx, b)
			w.must(err)
			if w.counts.reads.Load() != reads {
				t.Error("what was just written is read again")
			}
			far, err := sources.New(kube.New(w.client), w.key()).Of(w.ctx, b)
			w.must(err)
			if diff := cmp.Diff(far, near); diff != "" {
				t.Errorf("(-stored +kept):\n%s", diff)
			}
		})
	}
}

// TestSweepOfValues takes away the values of a Bundle that is gone, and no
// others.
func TestSweepOfValues(t *testing.T) {
	w := newWriting(t)
	w.write("a", map[string]any{"a": "1"})
	c := w.collector(w.writer.Store)
	sweep := func() {
		t.Helper()
		w.must(c.Sweep(w.ctx))
		w.clock.Step(2 * gc.Grace)
	}
	sweep()
	sweep()
	if w.values() != 1 {
		t.Fatal("the values of a Bundle were swept")
	}
	b := &fleet.Bundle{ObjectMeta: w.meta("app")}
	w.exists(b)
	b.Finalizers = nil
	w.must(w.client.Update(w.ctx, b))
	w.must(w.client.Delete(w.ctx, b))
	sweep()
	// Marked, and wanted again in time.
	w.write("a", map[string]any{"a": "1"})
	sweep()
	if w.values() != 1 {
		t.Fatal("values were swept that are wanted again")
	}
	w.exists(b)
	b.Finalizers = nil
	w.must(w.client.Update(w.ctx, b))
	w.must(w.client.Delete(w.ctx, b))
	sweep()
	sweep()
	if w.values() != 0 {
		t.Error("the values of a Bundle that is gone are left")
	}
}
