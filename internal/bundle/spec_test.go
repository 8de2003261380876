package bundle

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// one returns the only draft of a repository with this fleet.yaml.
func one(t *testing.T, fleetYAML string, in Input, more ...string) Draft {
	t.Helper()
	files := "fleet.yaml: " + fleetYAML + "\na.yaml:\n"
	for _, file := range more {
		files += file + "\n"
	}
	in.RepoName = "repo"
	drafts, err := Scan(tree(files), in)
	if err != nil || len(drafts) != 1 {
		t.Fatalf("%v, %v", show(drafts), err)
	}
	return drafts[0]
}

func TestTargets(t *testing.T) {
	prod := fleet.GitTarget{ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}}
	for name, tt := range map[string]struct {
		fleetYAML    string
		targets      []fleet.GitTarget
		names        []string
		restrictions []string
	}{
		"default":        {"{}", nil, []string{"default"}, []string{"default"}},
		"of the GitRepo": {"{}", []fleet.GitTarget{prod, {Name: "x", ClusterName: "x"}}, []string{"target000", "x"}, []string{"target000", "x"}},
		"customizations first": {
			"targetCustomizations: [{clusterName: a}, {name: b, clusterName: b}]\\ntargets: [{name: t, clusterName: t}]",
			[]fleet.GitTarget{prod}, []string{"t", "target001", "b", "target003"}, []string{"target003"},
		},
		"overridden": {
			"overrideTargets: [{name: mine, clusterGroup: g}]", []fleet.GitTarget{prod}, []string{"mine"}, []string{"mine"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			draft := one(t, tt.fleetYAML, Input{Targets: tt.targets})
			var names, restrictions []string
			for _, target := range draft.Spec.Targets {
				names = append(names, target.Name)
			}
			for _, r := range draft.Spec.TargetRestrictions {
				restrictions = append(restrictions, r.Name)
			}
			if diff := cmp.Diff(tt.names, names) + cmp.Diff(tt.restrictions, restrictions); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDefaultTargetIsTheGroupDefault(t *testing.T) {
	draft := one(t, "{}", Input{})
	want := fleet.BundleTargetRestriction{Name: "default", ClusterGroup: "default"}
	if diff := cmp.Diff([]fleet.BundleTargetRestriction{want}, draft.Spec.TargetRestrictions); diff != "" {
		t.Error(diff)
	}
	if draft.Spec.Targets[0].ClusterGroup != "default" {
		t.Errorf("got %+v", draft.Spec.Targets)
	}
}

func TestGitRepoOverrides(t *testing.T) {
	const file = `namespace: mine\nserviceAccount: mine\nlabels: {a: file}\nforceSyncGeneration: 3\n` +
		`targetCustomizations: [{clusterName: a, namespace: custom, serviceAccount: root, forceSyncGeneration: 5}]`
	in := Input{
		ServiceAccount: "forced", TargetNamespace: "forced", Paused: true, KeepResources: true, DeleteNamespace: true,
		CorrectDrift: &fleet.CorrectDrift{Enabled: true}, ForceSyncGeneration: 9, Labels: map[string]string{"a": "repo", "b": "repo"},
	}
	draft := one(t, file, in)
	spec := draft.Spec
	for what, pair := range map[string][2]any{
		"service account": {spec.ServiceAccount, "forced"},
		"its way round":   {spec.Targets[0].ServiceAccount, ""},
		"namespace":       {spec.TargetNamespace, "forced"},
		"of a target":     {spec.Targets[0].TargetNamespace, "forced"},
		"of the GitRepo":  {spec.Targets[1].TargetNamespace, "forced"},
		"switches":        {[]bool{spec.Paused, spec.KeepResources, spec.DeleteNamespace, spec.CorrectDrift.Enabled}, []bool{true, true, true, true}},
		"generation":      {spec.ForceSyncGeneration, int64(9)},
		"not hidden":      {spec.Targets[0].ForceSyncGeneration, int64(0)},
		"labels":          {draft.Labels, map[string]string{"a": "file", "b": "repo"}},
	} {
		if diff := cmp.Diff(pair[1], pair[0]); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	plain := one(t, file, Input{CorrectDrift: &fleet.CorrectDrift{}})
	if plain.Spec.TargetNamespace != "mine" || plain.Spec.Targets[0].ServiceAccount != "root" || plain.Spec.CorrectDrift != nil || plain.Spec.ForceSyncGeneration != 3 {
		t.Errorf("nothing to override, yet %+v", plain.Spec)
	}
}

func TestValuesFiles(t *testing.T) {
	const file = `helm:\n  values: {a: 1, b: {c: 1, d: 1}}\n  valuesFiles:\n  - one.yaml\n  - sub/two.yaml\n` +
		`targetCustomizations:\n- clusterName: x\n  helm: {valuesFiles: [x.yaml]}`
	draft := one(t, file, Input{}, "one.yaml: b: {c: 2}", "sub/two.yaml: b: {e: 3}", "x.yaml: a: 9", "sub/one.yaml:")
	if draft.Err != nil {
		t.Fatal(draft.Err)
	}
	helm := draft.Spec.Helm
	want := map[string]any{"a": 1.0, "b": map[string]any{"c": int64(2), "d": 1.0, "e": int64(3)}}
	if diff := cmp.Diff(want, helm.Values.Data); diff != "" || helm.ValuesFiles != nil {
		t.Errorf("%s, files %v", diff, helm.ValuesFiles)
	}
	if diff := cmp.Diff(map[string]any{"a": int64(9)}, draft.Spec.Targets[0].Helm.Values.Data); diff != "" {
		t.Error(diff)
	}
	if got := show([]Draft{draft})[0]; got != ". repo [a.yaml sub/one.yaml]" {
		t.Errorf("values files are no resources, others of their name are: %s", got)
	}
}

func TestValuesFileNamedFromAbove(t *testing.T) {
	drafts, err := Scan(tree(`web/fleet.yaml: helm: {valuesFiles: [web/values.yaml]}`+"\nweb/Chart.yaml: name: web\nweb/values.yaml: a: 1\n"), Input{RepoName: "repo"})
	if err != nil || len(drafts) != 1 || drafts[0].Err != nil {
		t.Fatalf("%v, %v", show(drafts), err)
	}
	const want = `web/fleet.yaml: valuesFiles are relative to the directory of fleet.yaml; values.yaml is read for "web/values.yaml"`
	d := drafts[0]
	if d.Spec.Helm.Values.Data["a"] != int64(1) || len(d.Warnings) != 1 || d.Warnings[0].String() != want {
		t.Errorf("got %v, %v", d.Spec.Helm.Values, d.Warnings)
	}
}

func TestBadValuesFiles(t *testing.T) {
	for name, tt := range map[string]struct{ fleetYAML, want string }{
		"missing": {
			`helm:\n  valuesFiles:\n  - values-prd.yaml`,
			`fleet.yaml:3: helm.valuesFiles[0]: the file values-prd.yaml does not exist, did you mean "values-prod.yaml"?`,
		},
		"missing in a customization": {
			`targetCustomizations:\n- clusterName: a\n  helm:\n    valuesFiles: [none]`,
			`fleet.yaml:4: targetCustomizations[0].helm.valuesFiles[0]: the file none does not exist`,
		},
		"out of the repository": {
			`helm: {valuesFiles: [../x.yaml]}`,
			`fleet.yaml:1: helm.valuesFiles[0]: "../x.yaml" leads out of the repository`,
		},
		"not values": {
			`helm: {valuesFiles: [list.yaml]}`,
			`fleet.yaml:1: helm.valuesFiles[0]: list.yaml:1: a file of values must be an object, not a list`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			draft := one(t, tt.fleetYAML, Input{}, "values-prod.yaml: a: 1", "list.yaml: [a]")
			if draft.Err == nil || draft.Err.Error() != tt.want {
				t.Errorf("got\n%v\nwant\n%s", draft.Err, tt.want)
			}
		})
	}
}
