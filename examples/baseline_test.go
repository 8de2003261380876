package examples_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-sh/flotilla/internal/bundle"
	"github.com/flotilla-sh/flotilla/internal/pipeline"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

func baseline(t *testing.T) *bundle.Draft {
	t.Helper()
	drafts := scan(t, "../bundles", bundle.Input{Paths: []string{"cluster-baseline"}})
	if len(drafts) != 1 {
		t.Fatalf("got %d bundles, want 1", len(drafts))
	}
	return &drafts[0]
}

func TestObjectsOfBaseline(t *testing.T) {
	want := []string{
		"ClusterRoleBinding baseline-platform-view",
		"LimitRange apps/baseline",
		"Namespace apps",
		"NetworkPolicy apps/allow-dns",
		"NetworkPolicy apps/default-deny",
		"ResourceQuota apps/baseline",
	}
	roles := map[string]string{"dev": "edit", "staging": "edit", "prod": "view"}
	for cluster, objects := range renderFor(t, baseline(t), fleetOfThree()) {
		t.Run(cluster, func(t *testing.T) {
			want := append(slices.Clone(want), "RoleBinding apps/baseline-developers-"+roles[cluster])
			slices.Sort(want)
			if diff := cmp.Diff(want, objects.ids()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestBaselineByLabels(t *testing.T) {
	for name, tt := range map[string]struct {
		labels   map[string]string
		bindings []string
		pods     string
	}{
		"no labels are the strictest": {nil, []string{"developers=view"}, "100"},
		"dev":                         {map[string]string{"env": "dev"}, []string{"developers=edit"}, "100"},
		"prod":                        {map[string]string{"env": "prod"}, []string{"developers=view"}, "400"},
		"misspelt":                    {map[string]string{"env": "Dev"}, []string{"developers=view"}, "100"},
		"a team": {map[string]string{"env": "prod", "team": "red"},
			[]string{"developers=view", "team-red=edit"}, "400"},
	} {
		t.Run(name, func(t *testing.T) {
			objects := renderFor(t, baseline(t), []pipeline.Cluster{cluster("one", tt.labels)})["one"]
			if diff := cmp.Diff(tt.bindings, objects.bindings(t)); diff != "" {
				t.Error(diff)
			}
			if pods := objects.get(t, "ResourceQuota", "baseline", "spec", "hard", "pods"); pods != tt.pods {
				t.Errorf("quota of pods is %v, want %s", pods, tt.pods)
			}
		})
	}
}

// bindings lists the RoleBindings as group=role.
func (r rendered) bindings(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, id := range r.ids() {
		name, ok := strings.CutPrefix(id, "RoleBinding apps/")
		if !ok {
			continue
		}
		subjects, _ := r.get(t, "RoleBinding", name, "subjects").([]any)
		subject, _ := subjects[0].(map[string]any)
		group, _ := subject["name"].(string)
		role, _ := r.get(t, "RoleBinding", name, "roleRef", "name").(string)
		out = append(out, group+"="+role)
	}
	return out
}

func TestBaselineEnforcesPodSecurity(t *testing.T) {
	draft := baseline(t)
	draft.Spec.Helm.Values.Data["namespaces"] = []any{
		map[string]any{"name": "shop"},
		map[string]any{"name": "legacy", "podSecurity": "baseline"},
	}
	objects := renderFor(t, draft, fleetOfThree()[:1])["dev"]
	for namespace, want := range map[string]string{"shop": "restricted", "legacy": "baseline"} {
		for _, mode := range []string{"enforce", "warn", "audit"} {
			got := objects.get(t, "Namespace", namespace, "metadata", "labels", "pod-security.kubernetes.io/"+mode)
			if got != want {
				t.Errorf("%s %ss %v, want %s", namespace, mode, got, want)
			}
		}
	}
}

func TestBaselineWithBadValues(t *testing.T) {
	for name, tt := range map[string]struct {
		key   string
		value any
		want  string
	}{
		"unknown level": {"podSecurity", "strict", "podSecurity"},
		"no namespaces": {"namespaces", []any{}, "namespaces"},
		"bad name":      {"namespaces", []any{map[string]any{"name": "No_Name"}}, "name"},
		"unknown value": {"namespace", "apps", "namespace"},
		"no default":    {"groups", []any{map[string]any{"name": "a", "scope": "cluster", "roles": map[string]any{}}}, "default"},
		"unknown scope": {"groups", []any{map[string]any{"name": "a", "scope": "all", "roles": map[string]any{"default": ""}}}, "scope"},
	} {
		t.Run(name, func(t *testing.T) {
			draft := baseline(t)
			values := map[string]any{tt.key: tt.value}
			draft.Spec.Helm.Values = &fleet.GenericMap{Data: values}
			out := outcomes(t, draft, fleetOfThree()[:1])
			if out[0].Err == nil || !strings.Contains(out[0].Err.Error(), tt.want) {
				t.Errorf("got %v, want %q", out[0].Err, tt.want)
			}
		})
	}
}
