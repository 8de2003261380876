package examples_test

import (
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-sh/flotilla/internal/bundle"
	"github.com/flotilla-sh/flotilla/internal/pipeline"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

func selectAll() *metav1.LabelSelector { return &metav1.LabelSelector{} }

// deployed are the directories that a GitRepo deploys.
func deployed() []string { return []string{"helm", "kustomize", "raw"} }

func examples(t *testing.T) map[string]*bundle.Draft {
	t.Helper()
	drafts := scan(t, ".", bundle.Input{Paths: deployed()})
	byPath := map[string]*bundle.Draft{}
	for i := range drafts {
		byPath[drafts[i].Path] = &drafts[i]
	}
	return byPath
}

func TestEveryExampleIsABundle(t *testing.T) {
	var found []string
	for name := range examples(t) {
		found = append(found, name)
	}
	slices.Sort(found)
	if diff := cmp.Diff(deployed(), found); diff != "" {
		t.Error(diff)
	}
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, _ fs.DirEntry, err error) error {
		if path.Base(name) == "fleet.yaml" && !slices.Contains(found, path.Dir(name)) {
			t.Errorf("%s is in no bundle that is tested", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestObjectsOfExamples(t *testing.T) {
	want := map[string][]string{
		"raw":  {"ConfigMap apps/clock", "Deployment apps/clock", "Service apps/clock"},
		"helm": {"ConfigMap apps/greeter", "Deployment apps/greeter", "Service apps/greeter"},
		// The generated name ends in a digest of the content.
		"kustomize": {"ConfigMap apps/shop-config-", "Deployment apps/shop", "Service apps/shop"},
	}
	for name, draft := range examples(t) {
		for cluster, objects := range renderFor(t, draft, fleetOfThree()) {
			t.Run(name+"/"+cluster, func(t *testing.T) {
				ids := objects.ids()
				if name == "kustomize" {
					ids[0] = ids[0][:strings.LastIndex(ids[0], "-")+1]
				}
				if diff := cmp.Diff(want[name], ids); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

func TestExamplesDifferByCluster(t *testing.T) {
	for name, tt := range map[string]struct {
		bundle, kind, object string
		field                []string
		want                 map[string]any
	}{
		"overlay of plain YAML": {"raw", "Deployment", "clock", []string{"spec", "replicas"},
			map[string]any{"dev": int64(1), "staging": int64(1), "prod": int64(2)}},
		"replicas of the chart": {"helm", "Deployment", "greeter", []string{"spec", "replicas"},
			map[string]any{"dev": int64(1), "staging": int64(1), "prod": int64(3)}},
		"template in values": {"helm", "ConfigMap", "greeter", []string{"data", "message"},
			map[string]any{"dev": "Hello from dev (dev)", "staging": "Hello from staging (staging)", "prod": "Hello from prod (prod)"}},
		"label in values": {"helm", "Deployment", "greeter", []string{"metadata", "labels", "example.com/region"},
			map[string]any{"dev": "eu-west", "staging": "us-east", "prod": "ap-south"}},
		"customized values": {"helm", "ConfigMap", "greeter", []string{"data", "logLevel"},
			map[string]any{"dev": "info", "staging": "info", "prod": "warn"}},
		"overlay of Kustomize": {"kustomize", "Deployment", "shop", []string{"spec", "replicas"},
			map[string]any{"dev": int64(1), "staging": int64(2), "prod": int64(3)}},
		"generator of Kustomize": {"kustomize", "ConfigMap", "shop-config", []string{"data", "environment"},
			map[string]any{"dev": "dev", "staging": "staging", "prod": "prod"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[string]any{}
			for cluster, objects := range renderFor(t, examples(t)[tt.bundle], fleetOfThree()) {
				got[cluster] = objects.get(t, tt.kind, tt.object, tt.field...)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestClusterWithoutEnvIsHeldBackByName(t *testing.T) {
	clusters := append(fleetOfThree(), cluster("edge", map[string]string{"region": "eu-west"}))
	for _, o := range outcomes(t, examples(t)["helm"], clusters) {
		if o.Desired.Cluster != "edge" {
			if o.Err != nil {
				t.Errorf("%s: %v", o.Desired.Cluster, o.Err)
			}
			continue
		}
		if o.Err == nil || !strings.Contains(o.Err.Error(), `cluster fleet-default/edge`) || !strings.Contains(o.Err.Error(), `no label "env"`) {
			t.Errorf("got %v", o.Err)
		}
	}
}

func TestGitRepoToCopy(t *testing.T) {
	text, err := os.ReadFile("gitrepo.yaml")
	if err != nil {
		t.Fatal(err)
	}
	repo := &fleet.GitRepo{}
	if err := yaml.UnmarshalStrict(text, repo); err != nil {
		t.Fatal(err)
	}
	drafts := scan(t, "..", bundle.Input{Paths: repo.Spec.Paths, Targets: repo.Spec.Targets})
	if len(drafts) != len(deployed()) {
		t.Fatalf("it deploys %d bundles, want %d", len(drafts), len(deployed()))
	}
	for i := range drafts {
		renderFor(t, &drafts[i], fleetOfThree())
	}
}

// A cluster with the baseline must be able to run the examples.
func TestPodsOfExamplesMeetTheRestrictedLevel(t *testing.T) {
	for name, draft := range examples(t) {
		pods := renderFor(t, draft, []pipeline.Cluster{fleetOfThree()[0]})["dev"]
		spec, _ := pods.get(t, "Deployment", "", "spec", "template", "spec").(map[string]any)
		context, _ := spec["securityContext"].(map[string]any)
		if context["runAsNonRoot"] != true || context["seccompProfile"] == nil {
			t.Errorf("%s: the pod's securityContext is %v", name, context)
		}
		containers, _ := spec["containers"].([]any)
		for _, c := range containers {
			container, _ := c.(map[string]any)
			context, _ := container["securityContext"].(map[string]any)
			if context["allowPrivilegeEscalation"] != false || context["capabilities"] == nil || container["resources"] == nil {
				t.Errorf("%s: container %v: securityContext is %v", name, container["name"], context)
			}
		}
	}
}
