// Package examples_test renders what a user copies from, the examples and the
// platform bundles, for clusters as a hub would.
package examples_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-sh/flotilla/internal/bundle"
	"github.com/flotilla-sh/flotilla/internal/pipeline"
	"github.com/flotilla-sh/flotilla/internal/render"
	"github.com/flotilla-sh/flotilla/internal/source"
	"github.com/flotilla-sh/flotilla/internal/target"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// cluster is a cluster of the default namespace with these labels.
func cluster(name string, labels map[string]string) pipeline.Cluster {
	return pipeline.Cluster{
		Cluster:      target.Cluster{Namespace: "fleet-default", Name: name, DeploymentNamespace: "cluster-" + name, Labels: labels},
		Capabilities: render.Capabilities{KubeVersion: "v1.36.3"},
	}
}

// fleetOfThree are the clusters that the lab has too.
func fleetOfThree() []pipeline.Cluster {
	return []pipeline.Cluster{
		cluster("dev", map[string]string{"env": "dev", "region": "eu-west"}),
		cluster("staging", map[string]string{"env": "staging", "region": "us-east"}),
		cluster("prod", map[string]string{"env": "prod", "region": "ap-south"}),
	}
}

// everywhere targets every cluster.
func everywhere() []fleet.GitTarget {
	return []fleet.GitTarget{{Name: "all", ClusterSelector: selectAll()}}
}

// scan returns the bundles of a directory of the repository, of which none may
// have a problem.
func scan(t *testing.T, dir string, in bundle.Input) []bundle.Draft {
	t.Helper()
	in.RepoName, in.Strict = "test", true
	if len(in.Targets) == 0 {
		in.Targets = everywhere()
	}
	drafts, err := bundle.Scan(source.Tree{Commit: "0123456789abcdef", FS: os.DirFS(dir)}, in)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range drafts {
		if d.Err != nil || len(d.Warnings) > 0 {
			t.Fatalf("%s: error %v, warnings %q", d.Path, d.Err, d.Warnings)
		}
	}
	return drafts
}

// rendered are the objects that a cluster gets.
type rendered []*unstructured.Unstructured

// renderFor returns what each cluster gets of a bundle, by the cluster's name.
func renderFor(t *testing.T, draft *bundle.Draft, clusters []pipeline.Cluster) map[string]rendered {
	t.Helper()
	out := map[string]rendered{}
	for _, o := range outcomes(t, draft, clusters) {
		if o.Err != nil {
			t.Fatalf("%s: %v", draft.Path, o.Err)
		}
		if len(o.Result.Warnings)+len(o.Result.UnknownScope) > 0 {
			t.Errorf("%s: warnings %q, unknown scope %q", draft.Path, o.Result.Warnings, o.Result.UnknownScope)
		}
		out[o.Desired.Cluster] = decode(t, o.Result.Objects)
	}
	return out
}

func outcomes(t *testing.T, draft *bundle.Draft, clusters []pipeline.Cluster) []pipeline.Outcome {
	t.Helper()
	stages := &pipeline.Stages{Renderer: render.New(), Key: []byte("key")}
	out, err := stages.Run(t.Context(), pipeline.Input{
		Bundle: target.Bundle{Namespace: "fleet-default", Name: draft.Name, Labels: draft.Labels, Spec: draft.Spec},
		Files:  draft.Files, SourceDigest: draft.SourceDigest, Clusters: clusters,
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) != len(clusters) {
		t.Fatalf("%s goes to %d clusters, want %d", draft.Path, len(out), len(clusters))
	}
	return out
}

func decode(t *testing.T, objects []render.Object) rendered {
	t.Helper()
	var out rendered
	for _, o := range objects {
		obj := &unstructured.Unstructured{}
		if err := obj.UnmarshalJSON(o.JSON); err != nil {
			t.Fatalf("%s %s: %v", o.Kind, o.Name, err)
		}
		out = append(out, obj)
	}
	return out
}

// ids names all objects as "Kind namespace/name", sorted.
func (r rendered) ids() []string {
	var out []string
	for _, o := range r {
		out = append(out, o.GetKind()+" "+strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/"))
	}
	slices.Sort(out)
	return out
}

// get returns a field of the only object whose kind and name begin so.
func (r rendered) get(t *testing.T, kind, name string, fields ...string) any {
	t.Helper()
	var found []*unstructured.Unstructured
	for _, o := range r {
		if o.GetKind() == kind && strings.HasPrefix(o.GetName(), name) {
			found = append(found, o)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d objects are a %s %s; there are %q", len(found), kind, name, r.ids())
	}
	value, _, err := unstructured.NestedFieldNoCopy(found[0].Object, fields...)
	if err != nil {
		t.Fatal(err)
	}
	return value
}
