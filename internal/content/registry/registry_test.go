package registry_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/flotilla-sh/flotilla/internal/content"
	"github.com/flotilla-sh/flotilla/internal/content/registry"
	"github.com/flotilla-sh/flotilla/internal/content/registry/registrytest"
	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/render"
	"github.com/flotilla-sh/flotilla/internal/render/rendertest"
)

const grace = time.Hour

// world is a registry, a hub's way to it and a clock.
type world struct {
	*testing.T
	server *registrytest.Server
	clock  *clocktesting.FakePassiveClock
}

func newWorld(t *testing.T) *world {
	t.Parallel()
	return &world{t, registrytest.Start(t, true), clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))}
}

// open is a process that uses the registry.
func (w *world) open(change ...func(map[string][]byte)) *registry.Registry {
	w.Helper()
	data := w.server.Data()
	for _, c := range change {
		c(data)
	}
	access, _, err := registry.Accesses(data)
	w.must(err)
	r, err := registry.Open(access, w.clock)
	w.must(err)
	return r
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) pass(d time.Duration) { w.clock.SetTime(w.clock.Now().Add(d)) }

type keeper map[string][]byte

func (k keeper) Kept(ref content.Ref) ([]byte, bool) { data, ok := k[ref.ID()]; return data, ok }
func (k keeper) Take(ref content.Ref, data []byte)   { k[ref.ID()] = data }

// bundle is about n kilobytes; change is in one of its objects.
func bundle(t *testing.T, n int, change string) content.Encoded {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	objects := make([]render.Object, n)
	for i := range objects {
		text := make([]byte, 1000)
		for j := range text {
			text[j] = byte('a' + r.IntN(4))
		}
		if i == n/2 {
			text = append(text, change...)
		}
		raw, err := json.Marshal(map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": fmt.Sprintf("cm-%05d", i)}, "data": map[string]any{"t": string(text)},
		})
		if err != nil {
			t.Fatal(err)
		}
		objects[i] = rendertest.Object(t, raw)
	}
	enc, err := content.NewEncoder(content.Key("key")).Objects(objects)
	if err != nil {
		t.Fatal(err)
	}
	return enc
}

func (w *world) fetch(r *registry.Registry, k keeper, enc content.Encoded) (content.Fetched, int, error) {
	m, took, err := content.FetchObjects(w.Context(), r, k, enc.Root.Ref)
	return took, len(m.Objects), err
}

// TestOneLineOfALargeBundle is the promise that the hub's API server keeps,
// kept by a registry.
func TestOneLineOfALargeBundle(t *testing.T) {
	w := newWorld(t)
	hub, agent, kept := w.open(), w.open(), keeper{}
	first := bundle(t, 5000, "")
	w.must(hub.Put(w.Context(), first))
	whole, n, err := w.fetch(agent, kept, first)
	w.must(err)
	if n != 5000 || whole.Bytes < 1_000_000 {
		t.Errorf("%d objects, %+v", n, whole)
	}
	for i := range 3 {
		if i == 2 {
			hub = w.open() // a restart
		}
		next := bundle(t, 5000, fmt.Sprint(i))
		w.must(hub.Put(w.Context(), next))
		before := w.server.Sent()
		took, n, err := w.fetch(agent, kept, next)
		w.must(err)
		sent := w.server.Sent() - before
		t.Logf("change %d: %+v, %d bytes on the wire; all took %+v", i, took, sent, whole)
		if n != 5000 || took.Bytes > 20_000 || sent > 32_000 {
			t.Errorf("a change of one line: %d objects, %+v, %d bytes sent", n, took, sent)
		}
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*world) *registry.Registry
		reason string
		says   string
	}{
		"wrong password": {func(w *world) *registry.Registry {
			return w.open(func(d map[string][]byte) { d["password"] = []byte("wrong") })
		}, registry.ReasonUnauthorized, `refuses the credentials of "flotilla"`},
		"no credentials": {func(w *world) *registry.Registry {
			return w.open(func(d map[string][]byte) { delete(d, "username"); delete(d, "password") })
		}, registry.ReasonUnauthorized, "refuses the credentials"},
		"down": {func(w *world) *registry.Registry { w.server.Stop(); return w.open() }, registry.ReasonUnreachable, "does not answer"},
		"TLS that is no": {func(w *world) *registry.Registry {
			return w.open(func(d map[string][]byte) { delete(d, "basicHTTP") })
		}, registry.ReasonUnreachable, "does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r, enc := test.change(w), bundle(t, 2, "")
			_, hasErr := r.Has(w.Context(), enc.Root.Name)
			_, getErr := r.Get(w.Context(), enc.Root.Ref)
			for what, err := range map[string]error{"put": r.Put(w.Context(), enc), "has": hasErr, "get": getErr} {
				if err == nil || fault.KindOf(err) != fault.Waiting || fault.ReasonOf(err, "") != test.reason || !strings.Contains(err.Error(), test.says) {
					t.Errorf("%s: %v", what, err)
				}
				if err != nil && strings.Contains(err.Error(), registrytest.Password) {
					t.Errorf("%s tells the password: %v", what, err)
				}
			}
		})
	}
}

func TestAccesses(t *testing.T) {
	for name, test := range map[string]struct {
		data map[string][]byte
		says string
	}{
		"no reference": {map[string][]byte{}, "the key reference is missing"},
		"no boolean":   {map[string][]byte{"reference": []byte("a/b"), "basicHTTP": []byte("maybe")}, "write true or false"},
		"no PEM":       {map[string][]byte{"reference": []byte("a/b"), "cacerts": []byte("x")}, "no PEM certificate"},
	} {
		if _, _, err := registry.Accesses(test.data); fault.KindOf(err) != fault.Stalled || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	hub, agent, err := registry.Accesses(map[string][]byte{
		"reference": []byte("oci://r.example/x/"), "username": []byte("w"), "password": []byte("1"),
		"agentUsername": []byte("r"), "agentPassword": []byte("2"), "insecureSkipTLS": []byte("true"),
	})
	if err != nil || hub.Username != "w" || agent.Username != "r" || agent.Password != "2" || hub.Reference != "r.example/x" || !agent.Insecure {
		t.Errorf("%+v, %+v, %v", hub, agent, err)
	}
	_, again, err := registry.Accesses(agent.Data())
	if err != nil || again != agent {
		t.Errorf("%+v came back as %+v, %v", agent, again, err)
	}
}

// TestGarbage lets sweeps and the registry's own garbage collection run, in all
// orders that matter. What is used can always be read.
func TestGarbage(t *testing.T) {
	w := newWorld(t)
	hub := w.open()
	first, second, third := bundle(t, 300, ""), bundle(t, 300, "x"), bundle(t, 300, "y")
	used := map[string]bool{}
	sweep := func() {
		t.Helper()
		w.must(hub.Sweep(w.Context(), used, w.clock.Now(), grace))
	}
	readable := func(enc content.Encoded, want bool) {
		t.Helper()
		if _, n, err := w.fetch(w.open(), keeper{}, enc); (err == nil && n == 300) != want {
			t.Errorf("%d objects, %v", n, err)
		}
	}
	for _, enc := range []content.Encoded{first, second} {
		w.must(hub.Put(w.Context(), enc))
		used[enc.Root.Name] = true
	}
	// The second counts on the chunks of the first, which goes.
	delete(used, first.Root.Name)
	sweep()
	w.pass(grace - time.Minute)
	sweep()
	readable(first, true)
	w.pass(2 * time.Minute)
	sweep()
	w.server.CollectGarbage()
	readable(first, false)
	readable(second, true)

	// A put in between takes the mark off.
	delete(used, second.Root.Name)
	sweep()
	w.must(hub.Put(w.Context(), second))
	w.pass(grace)
	sweep()
	readable(second, true)
	w.pass(grace)
	sweep()
	w.server.CollectGarbage()
	readable(second, false)
	if left := w.server.Blobs(); len(left) != 0 {
		t.Errorf("%d blobs are left", len(left))
	}

	// Nothing is counted on that has gone.
	w.must(hub.Put(w.Context(), third))
	used[third.Root.Name] = true
	w.server.CollectGarbage()
	readable(third, true)
	w.must(hub.Put(w.Context(), first))
	readable(first, true)
}

func TestRegistryWithoutDeletes(t *testing.T) {
	w := newWorld(t)
	w.server = registrytest.Start(t, false)
	hub, enc := w.open(), bundle(t, 2, "")
	w.must(hub.Put(w.Context(), enc))
	w.must(hub.Sweep(w.Context(), nil, w.clock.Now(), grace))
	w.pass(grace)
	if err := hub.Sweep(w.Context(), nil, w.clock.Now(), grace); err == nil || !strings.Contains(err.Error(), "allows no deletes") {
		t.Errorf("got %v", err)
	}
}

// TestDamageIsSeen changes what the registry has on its disk.
func TestDamageIsSeen(t *testing.T) {
	w := newWorld(t)
	enc := bundle(t, 300, "")
	w.must(w.open().Put(w.Context(), enc))
	for _, path := range w.server.Blobs() {
		raw, err := os.ReadFile(path)
		w.must(err)
		if strings.Contains(string(raw), "schemaVersion") {
			continue
		}
		bad := append([]byte(nil), raw...)
		bad[len(bad)/2] ^= 0xff
		w.must(os.WriteFile(path, bad, 0o600))
		if _, n, err := w.fetch(w.open(), keeper{}, enc); err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("%d objects, %v", n, err)
		}
		w.must(os.WriteFile(path, raw, 0o600))
	}
	if _, n, err := w.fetch(w.open(), keeper{}, enc); err != nil || n != 300 {
		t.Errorf("%d objects, %v", n, err)
	}
}

// TestPausesAreSpread asks a registry that does not answer, as several
// agents do.
func TestPausesAreSpread(t *testing.T) {
	w := newWorld(t)
	w.server.Stop()
	pauses := map[time.Duration]bool{}
	for range 4 {
		_, err := w.open().Get(t.Context(), content.Ref{Name: "c-1"})
		after := fault.AfterOf(err)
		if fault.KindOf(err) != fault.Waiting || after < 30*time.Second || after > 45*time.Second {
			t.Fatalf("waits %s: %v", after, err)
		}
		pauses[after] = true
	}
	if len(pauses) < 2 {
		t.Errorf("everybody comes back after %v", pauses)
	}
}
