package render_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-sh/flotilla/internal/hook"
	"github.com/flotilla-sh/flotilla/internal/render"
	"github.com/flotilla-sh/flotilla/internal/render/rendertest"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// tools is where "make equality" puts the programs helm and kustomize.
var tools = flag.String("tools", "", "directory with the programs to compare renders with")

// program returns a tool, or skips the test.
func program(t *testing.T, name string) string {
	t.Helper()
	if *tools == "" {
		t.Skip("run make equality, which builds the programs to compare with")
	}
	return filepath.Join(*tools, name)
}

// run returns what a tool writes.
func run(t *testing.T, program string, args ...string) ([]byte, error) {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env = []string{"HOME=" + t.TempDir(), "TZ=UTC"}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, errs.String())
	}
	return out.Bytes(), nil
}

// parsed reads a stream of YAML without the project's own parser.
func parsed(t *testing.T, text []byte) []map[string]any {
	t.Helper()
	var all []map[string]any
	for _, part := range strings.Split("\n"+string(text), "\n---") {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(part+"\n"), &object); err != nil {
			t.Fatalf("%v in %s", err, part)
		}
		if items, ok := object["items"].([]any); ok && object["kind"] == "List" {
			for _, item := range items {
				all = append(all, item.(map[string]any))
			}
		} else if len(object) > 0 {
			all = append(all, object)
		}
	}
	return all
}

// ours reads rendered objects.
func ours(t *testing.T, result *render.Result) []map[string]any {
	t.Helper()
	all := make([]map[string]any, len(result.Objects))
	for i := range result.Objects {
		if err := json.Unmarshal(result.Objects[i].JSON, &all[i]); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// byName takes out what differs on purpose: hooks that never run, fields that
// are null, and the namespace of the release, which Helm leaves to the client.
func byName(objects []map[string]any) map[string]map[string]any {
	out := map[string]map[string]any{}
	for _, object := range objects {
		metadata, _ := object["metadata"].(map[string]any)
		annotations, _ := metadata["annotations"].(map[string]any)
		h, isHook := hook.Of(func(name string) string { text, _ := annotations[name].(string); return text })
		if isHook && len(h.Events) == 0 {
			continue
		}
		if metadata["namespace"] == "apps" {
			delete(metadata, "namespace")
		}
		withoutNulls(object)
		out[fmt.Sprint(object["apiVersion"], " ", object["kind"], " ", metadata["namespace"], "/", metadata["name"], " ", annotations[hook.Annotation])] = object
	}
	return out
}

func withoutNulls(value any) {
	switch v := value.(type) {
	case map[string]any:
		maps.DeleteFunc(v, func(_ string, below any) bool { return below == nil })
		for _, below := range v {
			withoutNulls(below)
		}
	case []any:
		for _, below := range v {
			withoutNulls(below)
		}
	}
}

// TestEqualToHelm compares with "helm template" for the same values, Kubernetes
// version and APIs.
func TestEqualToHelm(t *testing.T) {
	helm := program(t, "helm")
	const password = "grafana: {adminPassword: secret}"
	for chart, sets := range map[string][]string{
		"podinfo":               {"", "{replicaCount: 3, ingress: {enabled: true}}", "{redis: {enabled: true}, hpa: {enabled: true}, serviceMonitor: {enabled: true}}"},
		"ingress-nginx":         {"", "{controller: {kind: DaemonSet, metrics: {enabled: true}}}", "{controller: {autoscaling: {enabled: true}, admissionWebhooks: {enabled: false}}, tcp: {'8080': 'default/web:80'}}"},
		"gatekeeper":            {"", "{replicas: 1, disableMutation: true}", "{auditInterval: 120, enableExternalData: false, logLevel: DEBUG}"},
		"base":                  {"", "{defaultRevision: stable}", "{global: {istioNamespace: mesh}}"},
		"kyverno":               {"", "{admissionController: {replicas: 3}}", "{reportsController: {enabled: false}, cleanupController: {enabled: false}}"},
		"kube-prometheus-stack": {"{" + password + "}", "{alertmanager: {enabled: false}, grafana: {enabled: false}}", "{prometheus: {prometheusSpec: {replicas: 2, retention: 30d}}, " + password + "}"},
		"submariner-k8s-broker": {"", "{submariner: {serviceDiscovery: true}}", "{rbac: {create: false}}"},
		"submariner-operator":   {"", "{operator: {image: {repository: example.com/operator, tag: '1.10'}}}", "{images: {tag: devel}, operator: {image: {repository: example.com/operator, tag: v1}}}"},
	} {
		for i, values := range sets {
			t.Run(fmt.Sprintf("%s/%d", chart, i), func(t *testing.T) {
				var data map[string]any
				if err := yaml.Unmarshal([]byte(values), &data); err != nil {
					t.Fatal(err)
				}
				got, gotErr := render.New().Render(t.Context(), chartRequest(t, chart, data))
				dir := t.TempDir()
				rendertest.Write(t, dir, rendertest.Chart(t, chart))
				file := filepath.Join(t.TempDir(), "values.yaml")
				if err := os.WriteFile(file, []byte(values), 0o600); err != nil {
					t.Fatal(err)
				}
				text, err := run(t, helm, "template", chart, dir, "--include-crds", "--namespace", "apps", "--kube-version", realCluster.KubeVersion, "-f", file)
				if err != nil || gotErr != nil {
					if (err == nil) != (gotErr == nil) {
						t.Fatalf("helm says %v, Flotilla %v", err, gotErr)
					}
					t.Log("both refuse the values")
					return
				}
				want, have := byName(parsed(t, text)), byName(ours(t, got))
				if diff := cmp.Diff(want, have); diff != "" {
					t.Errorf("helm - Flotilla +:\n%.3000s", diff)
				}
				t.Logf("%d objects, hooks and definitions among them", len(want))
			})
		}
	}
}

// TestEqualToKustomize compares with "kustomize build".
func TestEqualToKustomize(t *testing.T) {
	kustomize := program(t, "kustomize")
	const base = `-- base/kustomization.yaml --
resources: [web.yaml]
-- base/web.yaml --
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: "example.com/web:1", env: [{name: A, value: b}]}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
`
	for name, overlay := range map[string]string{
		"overlays":     "resources: [../base]\nnamePrefix: prod-\nnamespace: prod\nlabels: [{pairs: {env: prod}, includeSelectors: true}]\nreplicas: [{name: web, count: 5}]\nimages: [{name: example.com/web, newTag: '2'}]\n",
		"components":   "resources: [../base]\ncomponents: [../metrics]\n-- metrics/kustomization.yaml --\napiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n- target: {kind: Deployment}\n  patch: |-\n    - {op: add, path: /spec/template/metadata/annotations, value: {scrape: 'true'}}\n",
		"generators":   "resources: [../base]\nconfigMapGenerator:\n- {name: config, literals: [a=b], files: [note.txt, key=note.txt], envs: [vars.env]}\nsecretGenerator:\n- {name: token, literals: [t=secret], type: Opaque}\ngeneratorOptions: {labels: {made: 'yes'}}\n-- prod/note.txt --\nhello\n-- prod/vars.env --\nX=1\nY=two\n",
		"patches":      "resources: [../base]\npatches:\n- path: more.yaml\n- target: {kind: Service, name: web}\n  patch: |-\n    - {op: replace, path: /spec/ports/0/port, value: 8080}\n-- prod/more.yaml --\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  template:\n    spec:\n      containers:\n      - name: web\n        env: [{name: C, value: d}]\n      - {name: side, image: side}\n",
		"replacements": "resources: [../base]\nconfigMapGenerator: [{name: config, literals: [port=9090]}]\nreplacements:\n- source: {kind: ConfigMap, name: config, fieldPath: data.port}\n  targets:\n  - select: {kind: Deployment}\n    fieldPaths: ['spec.template.spec.containers.[name=web].env.[name=A].value']\n",
		"transformers": "resources: [../base]\ntransformers:\n- |-\n  apiVersion: builtin\n  kind: PrefixTransformer\n  metadata: {name: p}\n  prefix: x-\n  fieldSpecs: [{path: metadata/name}]\nsortOptions: {order: legacy}\n",
	} {
		t.Run(name, func(t *testing.T) {
			files := rendertest.Files(base + "-- prod/kustomization.yaml --\n" + overlay)
			dir := t.TempDir()
			rendertest.Write(t, dir, files)
			text, err := run(t, kustomize, "build", filepath.Join(dir, "prod"))
			if err != nil {
				t.Fatal(err)
			}
			got := mustRender(t, render.New(), render.Request{
				Files: files, Bundle: "web", Capabilities: realCluster,
				Options: fleet.BundleDeploymentOptions{DefaultNamespace: "apps", Kustomize: &fleet.KustomizeOptions{Dir: "prod"}},
			})
			want, have := byName(parsed(t, text)), byName(ours(t, got))
			if diff := cmp.Diff(want, have); diff != "" {
				t.Errorf("kustomize - Flotilla +:\n%s", diff)
			}
			t.Logf("%d objects: %s", len(want), strings.Join(slices.Sorted(maps.Keys(want)), ", "))
		})
	}
}
