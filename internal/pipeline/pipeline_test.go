package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-sh/flotilla/internal/content"
	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/pipeline"
	"github.com/flotilla-sh/flotilla/internal/render"
	"github.com/flotilla-sh/flotilla/internal/source"
	"github.com/flotilla-sh/flotilla/internal/target"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// counter renders one object and counts. It asks for the version's minor part,
// and fails where the values say so.
type counter struct {
	renders atomic.Int64
	needs   string
}

func (c *counter) Render(_ context.Context, req render.Request) (*render.Result, error) {
	c.renders.Add(1)
	text := ""
	if h := req.Options.Helm; h != nil && h.Values != nil {
		text = fmt.Sprint(h.Values.Data["text"])
	}
	if text == "bad" {
		return nil, fault.Stall("TemplateFailed", errors.New("templates/a.yaml:3: boom"))
	}
	raw := fmt.Sprintf(`{"apiVersion":"v1","data":{"text":%q},"kind":"ConfigMap","metadata":{"name":"a"}}`, text)
	return &render.Result{
		Objects:      []render.Object{{JSON: []byte(raw), APIVersion: "v1", Kind: "ConfigMap", Name: "a"}},
		Asked:        []string{"kubeVersion.minor"},
		NeedsCluster: c.needs,
		Warnings:     []fault.Note{{Message: "text is " + text}},
	}, nil
}

func stages(c *counter) *pipeline.Stages {
	return &pipeline.Stages{Renderer: render.NewMemo(c, 1<<20), Key: content.Key("0123456789abcdef")}
}

// cluster has a version, and the label text, which the values repeat.
func cluster(name, version, text string) pipeline.Cluster {
	return pipeline.Cluster{
		Cluster: target.Cluster{
			Namespace: "fleet-default", Name: name, DeploymentNamespace: "ns-" + name, Labels: map[string]string{"text": text},
		},
		Capabilities: render.Capabilities{KubeVersion: version},
	}
}

func input(clusters ...pipeline.Cluster) pipeline.Input {
	spec := fleet.BundleSpec{Targets: []fleet.BundleTarget{{Name: "all", ClusterSelector: &metav1.LabelSelector{}}}}
	spec.Helm = &fleet.HelmOptions{Values: &fleet.GenericMap{Data: map[string]any{"text": "${ .ClusterLabels.text }"}}}
	files := []source.File{{Path: "a.yaml", Data: []byte("a")}}
	return pipeline.Input{
		Bundle: target.Bundle{Namespace: "fleet-default", Name: "app", Spec: spec},
		Files:  files, SourceDigest: source.Digest(files), Clusters: clusters,
	}
}

func run(t *testing.T, s *pipeline.Stages, in pipeline.Input) []pipeline.Outcome {
	t.Helper()
	outcomes, err := s.Run(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if len(outcomes) != len(in.Clusters) {
		t.Fatalf("%d outcomes for %d clusters", len(outcomes), len(in.Clusters))
	}
	return outcomes
}

func TestEqualInputsRenderOnce(t *testing.T) {
	for name, tt := range map[string]struct {
		clusters []pipeline.Cluster
		renders  int64
		contents int
	}{
		"all alike":                   {[]pipeline.Cluster{cluster("a", "v1.36.1", "x"), cluster("b", "v1.36.1", "x"), cluster("c", "v1.36.1", "x")}, 1, 1},
		"differ in what nobody asked": {[]pipeline.Cluster{cluster("a", "v1.36.1", "x"), cluster("b", "v1.36.2", "x")}, 1, 1},
		"differ in what was asked":    {[]pipeline.Cluster{cluster("a", "v1.36.1", "x"), cluster("b", "v1.35.1", "x")}, 2, 1},
		"differ in values":            {[]pipeline.Cluster{cluster("a", "v1.36.1", "x"), cluster("b", "v1.36.1", "y")}, 2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			c := &counter{}
			s := stages(c)
			// One after the other: whether the first two of equal clusters
			// meet in flight is the memory's own test.
			contents := map[string]bool{}
			for _, one := range tt.clusters {
				out := run(t, s, input(one))[0]
				contents[out.Desired.Content.Digest] = true
				if out.Err != nil || out.Desired.Held || out.Encoded == nil || out.Desired.Content.Name != out.Encoded.Root.Name {
					t.Errorf("%s: %+v", one.Name, out)
				}
			}
			run(t, s, input(tt.clusters...))
			if c.renders.Load() != tt.renders || len(contents) != tt.contents {
				t.Errorf("%d renders and %d contents, want %d and %d", c.renders.Load(), len(contents), tt.renders, tt.contents)
			}
		})
	}
}

func TestContentIsKeptAsSoonAsItIsMade(t *testing.T) {
	in := input(cluster("a", "v1.36.1", "x"), cluster("b", "v1.36.1", "y"), cluster("bad", "v1.36.1", "bad"), cluster("full", "v1.36.1", "x"))
	var mu sync.Mutex
	kept := map[string]string{}
	in.Keep = func(_ context.Context, namespace string, enc *content.Encoded) error {
		mu.Lock()
		defer mu.Unlock()
		if namespace == "ns-full" {
			return errors.New("no room")
		}
		kept[namespace] = enc.Root.Name
		return nil
	}
	outcomes := run(t, stages(&counter{}), in)
	for _, o := range outcomes {
		held := o.Desired.Cluster == "bad" || o.Desired.Cluster == "full"
		if o.Encoded != nil || o.Result != nil || o.Desired.Held != held || (o.Err != nil) != held {
			t.Errorf("got %+v", o)
		}
		if !held && (kept[o.Desired.Namespace] != o.Desired.Content.Name || !o.Rendered || len(o.Warnings) != 1) {
			t.Errorf("got %+v, and %q was kept", o, kept[o.Desired.Namespace])
		}
	}
	if err := outcomes[3].Err; fault.KindOf(err) != fault.Transient || !strings.Contains(err.Error(), "cluster fleet-default/full: no room") || len(kept) != 2 {
		t.Errorf("got %v, and %v was kept", err, kept)
	}
}

func TestRememberedInputRendersNothing(t *testing.T) {
	first := run(t, stages(&counter{}), input(cluster("a", "v1.36.1", "x")))[0].Desired
	memory := pipeline.Remembered{Input: first.RenderInput, Asked: first.RenderAsked, Content: first.Content}
	for name, tt := range map[string]struct {
		cluster pipeline.Cluster
		change  func(*pipeline.Input)
		renders int64
	}{
		"unchanged":            {cluster: cluster("a", "v1.36.1", "x")},
		"a patch release":      {cluster: cluster("a", "v1.36.9", "x")},
		"a minor release":      {cluster: cluster("a", "v1.37.0", "x"), renders: 1},
		"other values":         {cluster: cluster("a", "v1.36.1", "y"), renders: 1},
		"other files":          {cluster: cluster("a", "v1.36.1", "x"), change: func(in *pipeline.Input) { in.SourceDigest = "other" }, renders: 1},
		"of another cluster":   {cluster: cluster("b", "v1.36.1", "x"), renders: 1},
		"of an older Flotilla": {cluster: cluster("a", "v1.36.1", "x"), change: func(in *pipeline.Input) { in.Remembered["ns-a"] = pipeline.Remembered{} }, renders: 1},
	} {
		t.Run(name, func(t *testing.T) {
			c := &counter{}
			in := input(tt.cluster)
			in.Remembered = map[string]pipeline.Remembered{"ns-a": memory}
			if tt.change != nil {
				tt.change(&in)
			}
			out := run(t, stages(c), in)[0]
			if c.renders.Load() != tt.renders {
				t.Errorf("%d renders, want %d", c.renders.Load(), tt.renders)
			}
			if tt.renders == 0 && (out.Encoded != nil || out.Desired.Content != memory.Content || out.Desired.RenderInput != memory.Input) {
				t.Errorf("got %+v, want what was remembered and nothing to store", out)
			}
		})
	}
}

func TestErringClustersAreHeldAndNamed(t *testing.T) {
	onHub := func(in *pipeline.Input) { in.Bundle.Spec.Render = fleet.RenderHub }
	limited := func(in *pipeline.Input) {
		in.Bundle.Spec.AllowedTargetNamespaceSelector = &metav1.LabelSelector{}
	}
	for name, tt := range map[string]struct {
		bad    pipeline.Cluster
		needs  string
		change func(*pipeline.Input)
		// alone tells that the neighbour goes on.
		alone  bool
		kind   fault.Kind
		reason string
		says   string
	}{
		"render fails":      {cluster("bad", "v1.36.1", "bad"), "", nil, true, fault.Stalled, "TemplateFailed", "templates/a.yaml:3: boom"},
		"not reported yet":  {cluster("bad", "", "x"), "", nil, true, fault.Waiting, pipeline.ReasonNotReported, "agent has not told"},
		"template fails":    {pipeline.Cluster{Cluster: target.Cluster{Namespace: "fleet-default", Name: "bad", DeploymentNamespace: "ns-bad"}, Capabilities: render.Capabilities{KubeVersion: "v1.36.1"}}, "", nil, true, fault.Stalled, "ValuesTemplateFailed", `the cluster has no label "text"`},
		"needs the cluster": {cluster("bad", "v1.36.1", "x"), "lookup of Secret x", onHub, false, fault.Stalled, pipeline.ReasonNeedsCluster, "lookup of Secret x"},
		"held":              {cluster("bad", "v1.36.1", "x"), "", limited, false, fault.Stalled, pipeline.ReasonHeld, "allowedTargetNamespaceSelector"},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(tt.bad, cluster("good", "v1.36.1", "x"))
			if tt.change != nil {
				tt.change(&in)
			}
			outcomes := run(t, stages(&counter{needs: tt.needs}), in)
			bad, good := outcomes[0], outcomes[1]
			if bad.Err == nil || !bad.Desired.Held || bad.Encoded != nil {
				t.Fatalf("got %+v, want it held", bad)
			}
			if fault.KindOf(bad.Err) != tt.kind || fault.ReasonOf(bad.Err, "") != tt.reason {
				t.Errorf("kind %v, reason %s, want %v, %s", fault.KindOf(bad.Err), fault.ReasonOf(bad.Err, ""), tt.kind, tt.reason)
			}
			for _, part := range []string{"cluster fleet-default/bad: ", tt.says} {
				if strings.Count(bad.Err.Error(), part) != 1 {
					t.Errorf("%q does not tell once of %q", bad.Err, part)
				}
			}
			if (good.Err == nil) != tt.alone || good.Desired.Held == tt.alone {
				t.Errorf("the neighbour: %v", good.Err)
			}
		})
	}
}

func TestInvalidSelectorHoldsTheBundle(t *testing.T) {
	in := input(cluster("a", "v1.36.1", "x"))
	in.Bundle.Spec.Targets[0].ClusterSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "env", Operator: "Near"}}}
	_, err := stages(&counter{}).Run(t.Context(), in)
	if fault.KindOf(err) != fault.Stalled || !strings.Contains(err.Error(), `targets[0] "all"`) {
		t.Errorf("got %v, want a stalled error that names the target", err)
	}
}

func TestErrors(t *testing.T) {
	of := func(n int) []pipeline.Outcome {
		outcomes := []pipeline.Outcome{{}}
		for i := range n {
			outcomes = append(outcomes, pipeline.Outcome{Err: fault.Stall("Boom", fmt.Errorf("cluster c%d: boom", i))}, pipeline.Outcome{})
		}
		return outcomes
	}
	five := "cluster c0: boom; cluster c1: boom; cluster c2: boom; cluster c3: boom; cluster c4: boom"
	for name, tt := range map[string]struct {
		held int
		want string
	}{
		"none":     {0, ""},
		"one":      {1, "cluster c0: boom"},
		"five":     {5, five},
		"thousand": {1000, five + "; and 995 more clusters"},
	} {
		t.Run(name, func(t *testing.T) {
			held, err := pipeline.Errors(of(tt.held))
			if held != tt.held || (err != nil) != (tt.held > 0) || err != nil && err.Error() != tt.want {
				t.Errorf("got %d, %v, want %d, %s", held, err, tt.held, tt.want)
			}
			if err != nil && fault.ReasonOf(err, "") != "Boom" {
				t.Errorf("the reason is lost: %s", fault.ReasonOf(err, ""))
			}
		})
	}
}

func TestErrorsThatClustersShareAreToldOnce(t *testing.T) {
	of := func(n int) (outcomes []pipeline.Outcome) {
		for i := range n {
			name, why := fmt.Sprintf("c%d", i), "boom"
			if i == 1 {
				why = "bang"
			}
			outcomes = append(outcomes, pipeline.Outcome{
				Err: (&target.Cluster{Namespace: "ns", Name: name}).Wrong(errors.New(why)),
			})
		}
		return outcomes
	}
	for n, want := range map[int]string{
		2:    "cluster ns/c0: boom; cluster ns/c1: bang",
		3:    "clusters ns/c0, ns/c2: boom; cluster ns/c1: bang",
		1000: "clusters ns/c0, ns/c2, ns/c3, ns/c4, ns/c5 and 994 more: boom; cluster ns/c1: bang",
	} {
		if held, err := pipeline.Errors(of(n)); held != n || err.Error() != want {
			t.Errorf("got %d, %v, want %d, %s", held, err, n, want)
		}
	}
}

func TestErrorsOfManyKinds(t *testing.T) {
	err := errors.New("boom")
	stalled, refused := fault.Stall("TemplateFailed", err), err
	waiting := func(d time.Duration) error { return fault.Wait(d, pipeline.ReasonNotReported, err) }
	for name, tt := range map[string]struct {
		errs  []error
		kind  fault.Kind
		after time.Duration
	}{
		"stalled":                   {[]error{stalled, stalled}, fault.Stalled, 0},
		"one waits":                 {[]error{stalled, waiting(time.Minute), stalled}, fault.Waiting, time.Minute},
		"the shortest wait":         {[]error{waiting(time.Hour), waiting(time.Minute)}, fault.Waiting, time.Minute},
		"one may succeed at once":   {[]error{stalled, refused, waiting(time.Minute)}, fault.Transient, 0},
		"those without error count": {[]error{nil, stalled, nil}, fault.Stalled, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var outcomes []pipeline.Outcome
			for _, err := range tt.errs {
				outcomes = append(outcomes, pipeline.Outcome{Err: err})
			}
			_, err := pipeline.Errors(outcomes)
			if fault.KindOf(err) != tt.kind || fault.AfterOf(err) != tt.after {
				t.Errorf("kind %v after %s, want %v after %s", fault.KindOf(err), fault.AfterOf(err), tt.kind, tt.after)
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	outcomes := run(t, stages(&counter{}), input(cluster("a", "v1.36.1", "x"), cluster("b", "v1.36.1", "z"), cluster("c", "v1.36.1", "x")))
	got, rendered := pipeline.Warnings(outcomes)
	const want = "text is x\ntext is z"
	if !rendered || strings.Join(got, "\n") != want {
		t.Errorf("got %v %q, want %q", rendered, got, want)
	}
	if got, rendered := pipeline.Warnings([]pipeline.Outcome{{}}); rendered || got != nil {
		t.Errorf("got %v %q of what was remembered", rendered, got)
	}
}
