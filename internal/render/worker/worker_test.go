package worker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/render"
	"github.com/flotilla-sh/flotilla/internal/render/rendertest"
	"github.com/flotilla-sh/flotilla/internal/render/worker"
	"github.com/flotilla-sh/flotilla/internal/source"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// TestMain lets the test program be its own child, as the real programs are.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == worker.Command {
		if err := worker.Main(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func newPool(t testing.TB, options worker.Options) *worker.Pool {
	t.Helper()
	options.Executable = os.Args[0]
	pool := worker.NewPool(options)
	t.Cleanup(pool.Close)
	return pool
}

// chart returns a request for a chart with one template.
func chart(template string) render.Request {
	return render.Request{
		Bundle: "web",
		Files:  rendertest.Files("-- Chart.yaml --\napiVersion: v2\nname: web\nversion: 1.0.0\n-- templates/config.yaml --\n" + template),
	}
}

const config = `apiVersion: v1
kind: ConfigMap
metadata:
  name: web
data:
  value: {{ .Values.value | default "none" | quote }}
`

const (
	endless   = `{{ define "again" }}{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}{{ end }}{{ include "again" . }}`
	greedy    = `{{ $all := list "x" }}{{ range until 1000000 }}{{ $all = concat $all $all }}{{ end }}`
	recursive = `{{ define "again" }}{{ template "again" . }}{{ end }}{{ template "again" . }}`
)

func TestPoolRendersLikeTheProcessItself(t *testing.T) {
	pool := newPool(t, worker.Options{Size: 1})
	for _, value := range []string{"one", "two"} {
		req := chart(config)
		req.Options.Helm = &fleet.HelmOptions{Values: &fleet.GenericMap{Data: map[string]any{"value": value}}}
		want, err := render.New().Render(context.Background(), req)
		if err != nil {
			t.Fatal(err)
		}
		got, err := pool.Render(context.Background(), req)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Objects) != 1 || !bytes.Equal(got.Objects[0].JSON, want.Objects[0].JSON) {
			t.Errorf("got %v, want %v", got.Objects, want.Objects)
		}
		if !strings.Contains(string(got.Objects[0].JSON), value) {
			t.Errorf("got %s, want the value %s in it", got.Objects[0].JSON, value)
		}
	}
}

func TestPoolReturnsCopies(t *testing.T) {
	req := chart(config)
	copied := render.Object{JSON: []byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"pull","namespace":"shop"}}`),
		APIVersion: "v1", Kind: "Secret", Namespace: "shop", Name: "pull", Source: "downstreamResources"}
	req.Copies = []render.Object{copied}
	got, err := newPool(t, worker.Options{Size: 1}).Render(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Objects) != 2 || got.Objects[0].Name != "pull" || !bytes.Equal(got.Objects[0].JSON, copied.JSON) {
		t.Errorf("got %v, want the copy and what is rendered", got.Objects)
	}
}

func TestPoolStopsWhatNeverEnds(t *testing.T) {
	for name, tt := range map[string]struct {
		template string
		options  worker.Options
		reason   string
		message  string
	}{
		"a loop without end": {
			endless, worker.Options{Deadline: 300 * time.Millisecond}, worker.ReasonDeadline,
			"rendering bundle web did not end within 300ms",
		},
		"output that grows without end": {
			greedy, worker.Options{Deadline: 20 * time.Second, MemoryLimit: 200 << 20}, worker.ReasonMemory,
			"rendering bundle web took more than 200 MiB",
		},
	} {
		t.Run(name, func(t *testing.T) {
			tt.options.Size = 1
			pool := newPool(t, tt.options)
			_, err := pool.Render(context.Background(), chart(tt.template))
			if err == nil || !strings.Contains(err.Error(), tt.message) {
				t.Fatalf("got %v, want %q", err, tt.message)
			}
			if fault.KindOf(err) != fault.Stalled || fault.ReasonOf(err, "") != tt.reason {
				t.Errorf("got reason %q, want stalled with %q", fault.ReasonOf(err, ""), tt.reason)
			}
			if _, err := pool.Render(context.Background(), chart(config)); err != nil {
				t.Errorf("the next bundle does not render: %v", err)
			}
		})
	}
}

func TestPoolKeepsErrorsWhole(t *testing.T) {
	pool := newPool(t, worker.Options{Size: 1})
	for name, template := range map[string]string{
		"failed by the chart": `{{ required "value is required" .Values.value }}`,
		"recursive":           recursive,
		"not YAML":            "a: b: c",
	} {
		t.Run(name, func(t *testing.T) {
			req := chart(template)
			_, want := render.New().Render(context.Background(), req)
			_, got := pool.Render(context.Background(), req)
			if got == nil || want == nil || got.Error() != want.Error() {
				t.Fatalf("got %v, want %v", got, want)
			}
			if fault.KindOf(got) != fault.KindOf(want) || fault.ReasonOf(got, "") != fault.ReasonOf(want, "") {
				t.Errorf("kind or reason was lost: %#v", got)
			}
			if _, ok := errors.AsType[*render.Failure](got); !ok {
				t.Errorf("what was asked was lost: %#v", got)
			}
		})
	}
}

func TestPoolKillsWhenNobodyWaits(t *testing.T) {
	pool := newPool(t, worker.Options{Size: 1})
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	if _, err := pool.Render(ctx, chart(endless)); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v, want the context's error", err)
	}
	if _, err := pool.Render(context.Background(), chart(config)); err != nil {
		t.Errorf("the pool did not replace the child: %v", err)
	}
}

func TestPoolReplacesOldChildren(t *testing.T) {
	pool := newPool(t, worker.Options{Size: 2, MaxRenders: 2})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := pool.Render(context.Background(), chart(config)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestPoolSaysWhatItCannotStart(t *testing.T) {
	pool := worker.NewPool(worker.Options{Executable: "/does/not/exist"})
	defer pool.Close()
	if _, err := pool.Render(context.Background(), chart(config)); err == nil || !strings.Contains(err.Error(), "/does/not/exist") {
		t.Errorf("got %v, want the program's name", err)
	}
}

func TestChildEndsWithItsInput(t *testing.T) {
	if err := worker.Main(strings.NewReader(""), &bytes.Buffer{}); err != nil {
		t.Errorf("got %v, want an ordinary end", err)
	}
}

func BenchmarkKubePrometheusStack(b *testing.B) {
	pool := newPool(b, worker.Options{Size: 1})
	req := render.Request{Bundle: "kps", Files: rendertest.Chart(b, "kube-prometheus-stack")}
	req.SourceDigest = source.Digest(req.Files)
	values := map[string]any{"grafana": map[string]any{"adminPassword": "secret"}}
	req.Options.Helm = &fleet.HelmOptions{Values: &fleet.GenericMap{Data: values}}
	req.Capabilities.KubeVersion = "v1.36.3"
	for b.Loop() {
		if _, err := pool.Render(context.Background(), req); err != nil {
			b.Fatal(err)
		}
	}
}

func TestNoFiles(t *testing.T) {
	pool := newPool(t, worker.Options{})
	for range 2 {
		result, err := pool.Render(context.Background(), render.Request{Bundle: "empty"})
		if err != nil || len(result.Objects) > 0 {
			t.Errorf("got %+v, %v", result, err)
		}
	}
}

// A child is told what a cluster offers only where it is not as before.
func TestPoolKeepsClustersApart(t *testing.T) {
	pool := newPool(t, worker.Options{Size: 1})
	for _, version := range []string{"v1.35.0", "v1.35.0", "v1.36.0", "v1.35.0"} {
		req := chart(strings.Replace(config, "{{ .Values.value", "{{ .Capabilities.KubeVersion.Version", 1))
		req.Capabilities = render.Capabilities{KubeVersion: version, APIs: []render.API{{GroupVersion: "v1", Kind: "ConfigMap", Namespaced: true}}}
		got, err := pool.Render(context.Background(), req)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Objects) != 1 || !strings.Contains(string(got.Objects[0].JSON), version) {
			t.Errorf("for %s: %s", version, got.Objects[0].JSON)
		}
	}
}
