package render_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flotilla-sh/flotilla/internal/render"
	"github.com/flotilla-sh/flotilla/internal/render/rendertest"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// counter counts the renders that reach the renderer behind it.
type counter struct {
	render.Renderer
	renders atomic.Int64
	before  func(context.Context) error
}

func (c *counter) Render(ctx context.Context, req render.Request) (*render.Result, error) {
	c.renders.Add(1)
	if c.before != nil {
		if err := c.before(ctx); err != nil {
			return nil, err
		}
	}
	return c.Renderer.Render(ctx, req)
}

// fleetOf returns a request for each of n clusters, which differ in an API
// each, in the version of every third and in what asks for them.
func fleetOf(n int, template string) []render.Request {
	files := rendertest.Files(web + "-- templates/a.yaml --\n" + template)
	requests := make([]render.Request, n)
	for i := range requests {
		requests[i] = render.Request{Files: files, Bundle: "web", Capabilities: render.Capabilities{
			KubeVersion: fmt.Sprintf("v1.%d.0", 30+i%3),
			APIs:        []render.API{{GroupVersion: fmt.Sprintf("own%d/v1", i), Kind: "X"}, {GroupVersion: fmt.Sprintf("half/v%d", i%2), Kind: "Y"}},
		}}
	}
	return requests
}

func TestMemoRendersEachInputOnce(t *testing.T) {
	for name, tt := range map[string]struct {
		template string
		renders  int64
		more     int64 // what clusters may cost that are rendered before it is known that they ask less
	}{
		"nothing asked":                {configMap("a"), 1, 0},
		"an API that half of them has": {configMap(`{{ .Capabilities.APIVersions.Has "half/v1" }}`), 2, 0},
		"the version":                  {configMap(`{{ .Capabilities.KubeVersion.Minor }}`), 3, 0},
		"a question behind a question": {configMap(`{{ if .Capabilities.APIVersions.Has "half/v1" }}x{{ else }}v{{ .Capabilities.KubeVersion.Minor }}{{ end }}`), 4, 2},
		"an error":                     {`{{ fail "no" }}`, 1, 0},
		"an error for half of them":    {`{{ if .Capabilities.APIVersions.Has "half/v1" }}{{ fail "no" }}{{ end }}` + configMap("a"), 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			behind := &counter{Renderer: render.New()}
			memo := render.NewMemo(behind, 1<<20)
			plain := render.New()
			var wg sync.WaitGroup
			for _, req := range fleetOf(60, tt.template) {
				wg.Go(func() {
					got, err := memo.Render(context.Background(), req)
					want, wantErr := plain.Render(context.Background(), req)
					if fmt.Sprint(err) != fmt.Sprint(wantErr) {
						t.Errorf("got %v, want %v", err, wantErr)
					} else if err == nil && string(allJSON(got)) != string(allJSON(want)) {
						t.Errorf("got %s, want %s", allJSON(got), allJSON(want))
					}
				})
			}
			wg.Wait()
			if n := behind.renders.Load(); n < tt.renders || n > tt.renders+tt.more {
				t.Errorf("%d renders, want %d", n, tt.renders)
			}
		})
	}
}

func TestMemoDoesNotKeepWhatMayPass(t *testing.T) {
	fail := true
	behind := &counter{Renderer: render.New(), before: func(context.Context) error {
		if fail {
			return errors.New("no process could be started")
		}
		return nil
	}}
	memo := render.NewMemo(behind, 1<<20)
	req := fleetOf(1, configMap("a"))[0]
	if _, err := memo.Render(context.Background(), req); err == nil {
		t.Fatal("want the error")
	}
	fail = false
	if _, err := memo.Render(context.Background(), req); err != nil {
		t.Errorf("the error was remembered: %v", err)
	}
}

func TestMemoGoesOnWhenTheFirstGivesUp(t *testing.T) {
	entered := make(chan struct{}, 2)
	var once atomic.Bool
	behind := &counter{Renderer: render.New(), before: func(ctx context.Context) error {
		entered <- struct{}{}
		if once.CompareAndSwap(false, true) {
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	}}
	memo := render.NewMemo(behind, 1<<20)
	req := fleetOf(1, configMap("a"))[0]
	ctx, cancel := context.WithCancel(context.Background())
	first := make(chan error, 1)
	go func() { _, err := memo.Render(ctx, req); first <- err }()
	<-entered
	second := make(chan error, 1)
	go func() { _, err := memo.Render(context.Background(), req); second <- err }()
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("the first got %v", err)
	}
	select {
	case err := <-second:
		if err != nil {
			t.Errorf("the second got %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the second still waits")
	}
}

func TestInputDigest(t *testing.T) {
	base := func() render.Request {
		return render.Request{
			Files: rendertest.Files(web + "-- templates/a.yaml --\n" + configMap("a")), Bundle: "web", Commit: "c1",
			Capabilities: render.Capabilities{KubeVersion: "v1.36.3", APIs: []render.API{{GroupVersion: "a/v1", Kind: "A"}}},
			Options:      values(map[string]any{"x": 1}),
		}
	}
	asked := []string{"a/v1", "kubeVersion.minor"}
	digestOf := func(req render.Request) string {
		digest, err := render.InputDigest(&req, asked)
		if err != nil {
			t.Fatal(err)
		}
		return digest
	}
	for name, tt := range map[string]struct {
		change func(*render.Request)
		same   bool
	}{
		"nothing":                       {func(*render.Request) {}, true},
		"a commit that changes no file": {func(r *render.Request) { r.Commit = "c2" }, true},
		"an API that nobody asked for": {func(r *render.Request) {
			r.Capabilities.APIs = append(r.Capabilities.APIs, render.API{GroupVersion: "b/v1", Kind: "B"})
		}, true},
		"a patch version":           {func(r *render.Request) { r.Capabilities.KubeVersion = "v1.36.4" }, true},
		"an option for the agent":   {func(r *render.Request) { r.Options.KeepResources = true; r.Options.Helm.TakeOwnership = true }, true},
		"a number that is the same": {func(r *render.Request) { r.Options = values(map[string]any{"x": 1.0}) }, true},
		"a file's content":          {func(r *render.Request) { r.Files[1].Data = []byte("x") }, false},
		"a file's name":             {func(r *render.Request) { r.Files[1].Path = "x" }, false},
		"the bundle's name":         {func(r *render.Request) { r.Bundle = "x" }, false},
		"a value":                   {func(r *render.Request) { r.Options.Helm.Values.Data["x"] = 2 }, false},
		"a namespace":               {func(r *render.Request) { r.Options.TargetNamespace = "x" }, false},
		"a default namespace":       {func(r *render.Request) { r.Options.DefaultNamespace = "x" }, false},
		"an overlay":                {func(r *render.Request) { r.Options.YAML = &fleet.YAMLOptions{Overlays: []string{"x"}} }, false},
		"a kustomization":           {func(r *render.Request) { r.Options.Kustomize = &fleet.KustomizeOptions{Dir: "x"} }, false},
		"a minor version":           {func(r *render.Request) { r.Capabilities.KubeVersion = "v1.37.0" }, false},
		"an API that was asked for": {func(r *render.Request) { r.Capabilities.APIs = []render.API{{GroupVersion: "b/v1", Kind: "B"}} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			req := base()
			tt.change(&req)
			if same := digestOf(req) == digestOf(base()); same != tt.same {
				t.Errorf("same digest: %v, want %v", same, tt.same)
			}
		})
	}
}

func TestCommitMattersWhereATemplateSeesIt(t *testing.T) {
	digestOf := func(commit string) string {
		req := render.Request{Files: rendertest.Files("-- templates/a.yaml --\n" + configMap("a")), Bundle: "web", Commit: commit}
		digest, err := render.InputDigest(&req, nil)
		if err != nil {
			t.Fatal(err)
		}
		return digest
	}
	if digestOf("c1") == digestOf("c2") {
		t.Error("the version of the synthesized chart carries the commit")
	}
}
