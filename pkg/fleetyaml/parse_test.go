package fleetyaml

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

func TestParseReadsEveryPart(t *testing.T) {
	file := `
name: web
labels: {team: a, tier: 1}
namespace: web
paused: yes
helm:
  releaseName: web
  version: 1.10
  timeoutSeconds: 60
  values:
    replicas: 3
    ratio: 0.5
    on: yes
    quoted: "yes"
    day: 2020-01-01
    nothing: null
    list: [1, {a: b}]
  valuesFiles: [values.yaml]
rolloutStrategy:
  maxUnavailable: 10%
  autoPartitionSize: 5
dependsOn:
- name: base
  acceptedStates: [Ready, Modified]
targets:
- clusterName: one
targetCustomizations:
- name: prod
  clusterSelector: {matchLabels: {env: prod}}
  helm: {values: {replicas: 5}}
  ignore: {conditions: [{type: Active}]}
overrideTargets:
- clusterGroup: edge
imageScans:
- image: nginx
  interval: 5m
  tagName: web
`
	got, warnings, err := Parse([]byte(file), "fleet.yaml")
	if err != nil || len(warnings) > 0 {
		t.Fatalf("warnings %v, error %v", warnings, err)
	}
	values := map[string]any{
		"replicas": 3.0, "ratio": 0.5, "true": true, "quoted": "yes", "day": "2020-01-01",
		"nothing": nil, "list": []any{1.0, map[string]any{"a": "b"}},
	}
	for what, pair := range map[string][2]any{
		"name":           {got.Name, "web"},
		"labels":         {got.Labels, map[string]string{"team": "a", "tier": "1"}},
		"namespace":      {got.TargetNamespace, "web"},
		"paused":         {got.Paused, true},
		"version":        {got.Helm.Version, "1.10"},
		"timeout":        {got.Helm.TimeoutSeconds, 60},
		"values":         {got.Helm.Values.Data, values},
		"maxUnavailable": {*got.RolloutStrategy.MaxUnavailable, intstr.FromString("10%")},
		"partition size": {*got.RolloutStrategy.AutoPartitionSize, intstr.FromInt32(5)},
		"states":         {got.DependsOn[0].AcceptedStates, []fleet.BundleState{fleet.Ready, fleet.Modified}},
		"targets":        {got.Targets[0].ClusterName, "one"},
		"customization":  {got.TargetCustomizations[0].Helm.Values.Data, map[string]any{"replicas": 5.0}},
		"ignore":         {got.TargetCustomizations[0].IgnoreOptions.Conditions, []map[string]string{{"type": "Active"}}},
		"override":       {got.OverrideTargets, []fleet.GitTarget{{ClusterGroup: "edge"}}},
		"image":          {got.ImageScans[0].Image, "nginx"},
		"line":           {got.Line("targetCustomizations[0].helm.values"), 30},
		"line above":     {got.Line("targetCustomizations[0].helm.values.x.y[3]"), 30},
	} {
		if diff := cmp.Diff(pair[1], pair[0]); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
}

func TestParseTellsWhatIsWrong(t *testing.T) {
	for name, tt := range map[string]struct {
		file string
		// warnings and errors are the texts after "fleet.yaml:", in order.
		warnings, errors []string
	}{
		"empty file":    {file: ""},
		"only comments": {file: "# nothing\n"},
		"misspelled field": {
			file:     "name: x\n\nhelm:\n  valueFiles: [a]\n",
			warnings: []string{`4: unknown field "helm.valueFiles", did you mean "valuesFiles"?`},
		},
		"field of a customization": {
			file:     "targetCustomizations:\n- clusterName: a\n  kustomise: {}\n",
			warnings: []string{`3: unknown field "targetCustomizations[0].kustomise", did you mean "kustomize"?`},
		},
		"field one level too high": {
			file:     "valuesFiles: [a]\n",
			warnings: []string{`1: unknown field "valuesFiles", did you mean "helm.valuesFiles"?`},
		},
		"name used in GitRepo": {
			file:     "targetNamespace: x\n",
			warnings: []string{`1: unknown field "targetNamespace", did you mean "namespace"?`},
		},
		"nothing near": {
			file:     "xyzzy: 1\n",
			warnings: []string{`1: unknown field "xyzzy"`},
		},
		"wrong case": {
			file:     "Name: x\n",
			warnings: []string{`1: field "Name" is spelled "name"`},
		},
		"given twice": {
			file:     "name: x\nname: z\nhelm:\n  values:\n    a: 1\n    a: 2\n",
			warnings: []string{`2: "name" is given twice, first in line 1; the last one counts`, `6: "helm.values.a" is given twice, first in line 5; the last one counts`},
		},
		"second document": {
			file:     "name: x\n---\nname: y\n",
			warnings: []string{`2: only the first document of the file is read`},
		},
		"field of the controller": {
			file:     "contentsId: x\n",
			warnings: []string{`1: "contentsId" is written by the controller and has no effect here`},
		},
		"customization that selects nothing": {
			file:     "targetCustomizations:\n- name: all\n",
			warnings: []string{`2: "targetCustomizations[0]" selects no cluster: it has none of clusterName, clusterSelector, clusterGroup and clusterGroupSelector (clusterSelector: {} selects all)`},
		},
		"several wrong types": {
			file: "name: [a]\nhelm:\n  timeoutSeconds: ten\n  values: text\n  valuesFiles: values.yaml\ntargetCustomizations: {}\n",
			errors: []string{
				`1: "name" must be a string, not a list`,
				`3: "helm.timeoutSeconds" must be a whole number, not the string "ten"`,
				`4: "helm.values" must be an object, not the string "text"`,
				`5: "helm.valuesFiles" must be a list, not the string "values.yaml"; write [values.yaml]`,
				`6: "targetCustomizations" must be a list, not an object`,
			},
		},
		"wrong type of a boolean": {
			file:   "keepResources: 1\n",
			errors: []string{`1: "keepResources" must be true or false, not the number 1`},
		},
		"not an object": {
			file:   "- a\n",
			errors: []string{`1: the file must be an object, not a list`},
		},
		"broken YAML": {
			file:   "name: x\nhelm:\n\tvalues: {}\n",
			errors: []string{`3: not valid YAML: the line is indented with a tab: YAML takes spaces only`},
		},
		"merge conflict": {
			file:   "name: x\n<<<<<<< HEAD\npaused: true\n=======\npaused: false\n>>>>>>> branch\n",
			errors: []string{`2: not valid YAML: a marker of a merge conflict (<<<<<<<): finish the merge and commit the result`},
		},
		"no mistake that is known": {
			file:   "name: x: y\n",
			errors: []string{`1: not valid YAML: mapping values are not allowed in this context`},
		},
		"selector that would select all": {
			file:   "targetCustomizations:\n- clusterSelector:\n    matchLabel: {env: prod}\n",
			errors: []string{`3: unknown field "targetCustomizations[0].clusterSelector.matchLabel", did you mean "matchLabels"?; a selector without it would select more than it should`},
		},
		"namespaces that cannot be any": {
			file: "defaultNamespace: Web_1\ntargetCustomizations:\n- clusterSelector: {}\n  namespace: a.b\n",
			errors: []string{
				`1: "defaultNamespace": "Web_1" cannot be the name of a namespace: a lowercase RFC 1123 label`,
				`4: "targetCustomizations[0].namespace": "a.b" cannot be the name of a namespace: must not contain dots`,
			},
		},
		"infinite number": {
			file:   "helm: {values: {a: .inf}}\n",
			errors: []string{`1: "helm.values.a" is .inf, which has no form in JSON; write a number or quote it`},
		},
		"dependency on nothing": {
			file:   "dependsOn:\n- acceptedStates: [Fine]\n",
			errors: []string{`2: "dependsOn[0]" must specify either name or selector, else it depends on nothing`, `2: "dependsOn[0].acceptedStates[0]": invalid state "Fine"; one of Ready, NotReady, Pending, OutOfSync, Modified, WaitApplied, ErrApplied`},
		},
		"pattern that is none": {
			file:   "diff:\n  comparePatches:\n  - name: \"a(\"\n    operations: [{op: ignore}]\n",
			errors: []string{"3: \"diff.comparePatches[0].name\" is a regular expression where the operation is ignore, and \"a(\" is none: error parsing regexp: missing closing ): `a(`"},
		},
		"name that cannot be one": {
			file:   "name: Web_1\n",
			errors: []string{`1: "name": "Web_1" cannot be the name of a bundle: a lowercase RFC 1123 subdomain must consist of`},
		},
		"name that fits no label": {
			file:   "name: " + strings.Repeat("a", 64) + "\n",
			errors: []string{`1: "name": "` + strings.Repeat("a", 64) + `" cannot be the name of a bundle: it is 64 characters long, and 63 fit into a label`},
		},
		"no override": {
			file:     "overrideTargets: []\n",
			warnings: []string{`1: "overrideTargets" is empty and has no effect: the targets of the GitRepo hold`},
		},
		"mode": {
			file:   "targetCustomizationMode: Both\n",
			errors: []string{`1: "targetCustomizationMode" is "Both"; it must be FirstMatch or AllMatches`},
		},
		"selector": {
			file:   "overrideTargets:\n- clusterSelector:\n    matchExpressions: [{key: a, operator: Near}]\n",
			errors: []string{`2: "overrideTargets[0].clusterSelector": "Near" is not a valid label selector operator`},
		},
		"alias that contains itself": {
			file:   "helm:\n  values: &a\n    below: *a\n",
			errors: []string{`2: the file is too large or too deeply nested`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, warnings, err := Parse([]byte(tt.file), "fleet.yaml")
			compare(t, "warnings", tt.warnings, warnings)
			errs, _ := err.(Problems)
			compare(t, "errors", tt.errors, errs)
		})
	}
}

func compare(t *testing.T, what string, want []string, got []Problem) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: got %v, want %q", what, got, want)
	}
	for i := range want {
		if !strings.HasPrefix(got[i].String(), "fleet.yaml:"+want[i]) {
			t.Errorf("%s: got\n%s\nwant\nfleet.yaml:%s", what, got[i], want[i])
		}
	}
}

func TestMergeKeys(t *testing.T) {
	file := `
helm:
  values:
    base: &base {a: 1, b: 1}
    more: &more {b: 2, c: 2}
    both: {<<: [*base, *more], a: 0}
`
	got, _, err := Parse([]byte(file), "fleet.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"a": 0.0, "b": 1.0, "c": 2.0}
	if diff := cmp.Diff(want, got.Helm.Values.Data["both"]); diff != "" {
		t.Error(diff)
	}
}

func TestStrict(t *testing.T) {
	_, warnings, err := Parse([]byte("nmae: x\n"), "apps/fleet.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := `apps/fleet.yaml:1: unknown field "nmae", did you mean "name"?`
	if err := Strict(warnings); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if err := Strict(nil); err != nil {
		t.Errorf("no warnings, yet %v", err)
	}
}

func TestValues(t *testing.T) {
	got, _, err := Values([]byte("a: 1\nb: {c: yes}\n"), "values.yaml")
	if diff := cmp.Diff(map[string]any{"a": int64(1), "b": map[string]any{"c": true}}, got); diff != "" || err != nil {
		t.Errorf("error %v, %s", err, diff)
	}
	if got, _, err := Values(nil, "values.yaml"); err != nil || len(got) > 0 {
		t.Errorf("empty file: %v, %v", got, err)
	}
	_, _, err = Values([]byte("- a\n"), "values.yaml")
	if err == nil || err.Error() != "values.yaml:1: a file of values must be an object, not a list" {
		t.Errorf("got %v", err)
	}
}

func TestName(t *testing.T) {
	for file, want := range map[string]string{
		"name: web\nhelm: []\n":        "web",
		"metadata: {name: web}\n":      "web",
		"name: [a]\n":                  "",
		"name: x\n\tbroken":            "x",
		"helm: [\nname: 'x' # y\n":     "x",
		"\tbroken":                     "",
		"helm: {}\n":                   "",
		"name: a\nmetadata: {name: b}": "a",
	} {
		if got := Name([]byte(file)); got != want {
			t.Errorf("%q: got %q, want %q", file, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "name: x\n", "helm: {values: {a: &a [1, *a]}}\n", "a: &a {<<: *a}\n", "? [a]\n: b\n",
		"targetCustomizations:\n- clusterSelector: {}\n  helm: {valuesFrom: [{secretKeyRef: {name: x}}]}\n",
		"rolloutStrategy: {maxUnavailable: 10%}\nimageScans: [{interval: 5m}]\n", "name: !!binary x\n", "---\n...\n---\n", "imAgeSCAns: [{0}]",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, warnings, err := Parse(data, "fleet.yaml")
		if (got == nil) == (err == nil) {
			t.Fatalf("want either a result or an error: %v, %v", got, err)
		}
		problems, _ := err.(Problems)
		for _, p := range append(warnings, problems...) {
			if p.Line < 1 || p.Message == "" {
				t.Errorf("a problem without place or words: %+v", p)
			}
		}
		Values(data, "values.yaml")
		Name(data)
	})
}
