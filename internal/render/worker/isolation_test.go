package worker_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/render"
	"github.com/flotilla-sh/flotilla/internal/render/rendertest"
	"github.com/flotilla-sh/flotilla/internal/render/worker"
)

// bomb is a few lines of YAML whose aliases stand for ten to the tenth values.
func bomb() string {
	var text strings.Builder
	text.WriteString("a0: &a0 [x]\n")
	for i := 1; i <= 10; i++ {
		fmt.Fprintf(&text, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	return text.String()
}

// A bundle can be made to hurt the service that renders it. Each gets an error
// of its own, in a bounded time; the others and the parent do not notice.
func TestBadBundlesHarmNobody(t *testing.T) {
	const config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	plain := func(text string) render.Request {
		return render.Request{Bundle: "web", Files: rendertest.Files(text)}
	}
	indented := "  " + strings.ReplaceAll(strings.TrimSpace(bomb()), "\n", "\n  ")
	for name, tt := range map[string]struct {
		req    render.Request
		reason string // where it is of this package
		err    string
	}{
		"a loop without end":            {chart(endless), worker.ReasonDeadline, "did not end within"},
		"values that grow without end":  {chart(greedy), worker.ReasonMemory, "MiB of memory"},
		"a text that grows without end": {chart(`{{ $x := "0123456789" }}{{ range until 40 }}{{ $x = print $x $x }}{{ end }}` + config), worker.ReasonMemory, "MiB of memory"},
		"a recursion without end":       {chart(recursive), "", ""},
		"many large objects": {chart(`{{ range $i := until 40 }}` + "---\n" + `apiVersion: v1
kind: ConfigMap
metadata: {name: a{{ $i }}}
data: {x: {{ repeat 500000 "x" }}}
{{ end }}`), worker.ReasonOutput, "renders to 19 MiB of objects, and at most 8 MiB are allowed"},
		"aliases in a manifest":            {plain("-- a.yaml --\n" + config + "data:\n" + indented + "\n"), "", "excessive aliasing"},
		"aliases in a template":            {chart(`{{ $x := fromYaml .Values.bomb }}{{ toYaml $x }}`), "", ""},
		"aliases in the values of a chart": {plain("-- Chart.yaml --\napiVersion: v2\nname: web\nversion: 1.0.0\n-- values.yaml --\n" + bomb() + "-- templates/a.yaml --\n" + config), "", "excessive aliasing"},
		"aliases in a kustomization":       {plain("-- kustomization.yaml --\n" + bomb()), "", "too large"},
		"aliases in a resource":            {plain("-- kustomization.yaml --\nresources: [a.yaml]\n-- a.yaml --\n" + config + "data:\n" + indented + "\n"), "", ""},
		"a message without end":            {chart(`{{ fail (repeat 5000000 "x") }}`), "", "xxx…"},
	} {
		t.Run(name, func(t *testing.T) {
			deadline := 30 * time.Second
			if tt.reason == worker.ReasonDeadline {
				deadline = time.Second
			}
			pool := newPool(t, worker.Options{Size: 2, Deadline: deadline, MemoryLimit: 300 << 20, OutputLimit: 8 << 20})
			ended := make(chan error, 1)
			go func() {
				_, err := pool.Render(context.Background(), tt.req)
				ended <- err
			}()
			for range 3 {
				if _, err := pool.Render(context.Background(), chart(config)); err != nil {
					t.Fatalf("another bundle: %v", err)
				}
			}
			err := <-ended
			if tt.reason == "" && tt.err == "" && err == nil {
				return // it is bounded elsewhere, and cheap
			}
			if err == nil || !strings.Contains(err.Error(), tt.err) || fault.KindOf(err) != fault.Stalled {
				t.Fatalf("got %.300v, want %q for a human", err, tt.err)
			}
			if got := fault.ReasonOf(err, ""); tt.reason != "" && got != tt.reason {
				t.Errorf("reason %s, want %s", got, tt.reason)
			}
			if len(err.Error()) > 40<<10 {
				t.Errorf("the message has %d bytes", len(err.Error()))
			}
		})
	}
}

// What a child makes stays in the child, as long as it does not send it.
func TestParentStaysSmall(t *testing.T) {
	pool := newPool(t, worker.Options{Size: 1, Deadline: 20 * time.Second, MemoryLimit: 200 << 20, OutputLimit: 8 << 20})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range 3 {
		if _, err := pool.Render(context.Background(), chart(greedy)); fault.ReasonOf(err, "") != worker.ReasonMemory {
			t.Fatalf("got %v", err)
		}
	}
	runtime.ReadMemStats(&after)
	if grown := int64(after.TotalAlloc - before.TotalAlloc); grown > 16<<20 {
		t.Errorf("the parent allocated %d MiB", grown>>20)
	}
}
