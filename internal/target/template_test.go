package target

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-sh/flotilla/internal/fault"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

func subject() Cluster {
	c := cluster("prod", "env", "prod", "management.cattle.io/cluster-display-name", "Prod", "objectset.rio.cattle.io/hash", "x")
	c.Annotations = map[string]string{"owner": "me"}
	c.TemplateValues = map[string]any{"size": 3, "big": 1e6, "net": map[string]any{"cidr": "10.0.0.0/8"}}
	return c
}

func TestTemplates(t *testing.T) {
	for name, tt := range map[string]struct {
		in, want any
	}{
		"no template":         {"plain $x {{ .Values.a }}", "plain $x {{ .Values.a }}"},
		"number":              {3, 3},
		"label":               {"${ .ClusterLabels.env }.example.com", "prod.example.com"},
		"own labels stay":     {`${ index .ClusterLabels "management.cattle.io/cluster-display-name" }`, "Prod"},
		"foreign labels go":   {`x${ get .ClusterLabels "objectset.rio.cattle.io/hash" }`, "x"},
		"name and namespace":  {"${ .ClusterNamespace }/${ .ClusterName }", "fleet-default/prod"},
		"annotation":          {"${ .ClusterAnnotations.owner }", "me"},
		"cluster values":      {"${ .ClusterValues.size } ${ .ClusterValues.net.cidr }", "3 10.0.0.0/8"},
		"big number":          {"n${ .ClusterValues.big }", "n1000000"},
		"function":            {"${ upper .ClusterName }", "PROD"},
		"missing but soft":    {`a${ get .ClusterLabels "region" }`, "a"},
		"missing and default": {`${ get .ClusterLabels "region" | default "eu" }`, "eu"},
		"prefix":              {"global.fleet.clusterLabels.env", "prod"},
		"prefix, missing":     {"global.fleet.clusterLabels.region", ""},
		"list":                {[]any{"a", "${ .ClusterName }"}, []any{"a", "prod"}},
		"loop":                {"${ range until 3 }${ . }-${ end }", "0-1-2-"},
		"loop with else":      {"${ range list }x${ else }none${ end }", "none"},
		"condition":           {`${ if eq .ClusterLabels.env "prod" }five${ else }1${ end }`, "five"},
		"own braces":          {`${ printf "a}b" }`, "a}b"},
		"set changes no other": {
			[]any{`${ $_ := set .ClusterValues "size" 9 }${ .ClusterValues.size }`}, []any{9.0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := subject()
			got := assign(t, toAll(helmValues(map[string]any{"below": map[string]any{"key": tt.in}})), c)
			if got[0].Err != nil {
				t.Fatal(got[0].Err)
			}
			value := got[0].Options.Helm.Values.Data["below"].(map[string]any)["key"]
			if diff := cmp.Diff(tt.want, value); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(subject(), c); diff != "" {
				t.Errorf("the cluster was changed: %s", diff)
			}
		})
	}
}

// As in Rancher Fleet, where all values are one text of YAML that is filled in
// and then read: each value is what YAML makes of it at its place.
func TestWhatIsFilledInIsReadAsYAML(t *testing.T) {
	c := cluster("c", "off", "false", "num", "3", "ver", "1.10", "word", "Yes", "text", "a-b.c/d", "url", "http://x:80", "none", "null", "anchor", "*secret")
	c.TemplateValues = map[string]any{
		"ports": []any{80, 443}, "pair": "a: secret", "lines": "one\nsecret", "hash": "a # b", "pem": "-----BEGIN X-----\nsecret\n-----END X-----\n",
		"block": "\n        a: 1\n        b: 2", "inject": "1\nother: secret",
	}
	for text, want := range map[string]any{
		"${ .ClusterLabels.off }":                                    false,
		"${ .ClusterLabels.num }":                                    3.0,
		"${ .ClusterLabels.ver }":                                    1.1,
		"${ .ClusterLabels.word }":                                   true,
		"${ .ClusterLabels.none }":                                   nil,
		"${ .ClusterLabels.text }":                                   "a-b.c/d",
		"${ .ClusterLabels.url }":                                    "http://x:80",
		`${ get .ClusterLabels "region" }`:                           nil,
		"${ .ClusterValues.ports | toJson }":                         []any{80.0, 443.0},
		`${ dict "a" 1 | toJson }`:                                   map[string]any{"a": 1.0},
		"${ .ClusterLabels.num | quote }":                            "3",
		"${ .ClusterLabels.num | squote }":                           "3",
		"a: ${ .ClusterLabels.num }":                                 "a: 3",
		"'${ .ClusterLabels.num }'":                                  "'3'",
		"m-${ .ClusterLabels.num }":                                  "m-3",
		"${ .ClusterLabels.num }${ .ClusterLabels.num }":             33.0,
		"${ .ClusterLabels.num }\n":                                  "3\n",
		"[${ .ClusterLabels.num }]":                                  "[3]",
		`${ get .ClusterLabels "region" | default "x: y" }`:          "x: y",
		"${ .ClusterValues.hash }":                                   "a",
		"${ .ClusterValues.block }":                                  map[string]any{"a": 1.0, "b": 2.0},
		"${ .ClusterValues.pem | toJson }":                           "-----BEGIN X-----\nsecret\n-----END X-----\n",
		`${ if eq .ClusterLabels.off "true" }on${ else }off${ end }`: false,
		"${ .ClusterValues.pair }":                                   errors.New(""),
		"${ .ClusterValues.lines }":                                  errors.New(""),
		"${ .ClusterValues.pem }":                                    errors.New(""),
		"${ .ClusterValues.inject }":                                 errors.New(""),
		"${ .ClusterLabels.anchor }":                                 errors.New(""),
	} {
		t.Run(text, func(t *testing.T) {
			got := assign(t, toAll(helmValues(map[string]any{"l": []any{map[string]any{"k": text}}})), c)[0]
			if _, bad := want.(error); bad {
				start := "cluster fleet-default/c: helm.values.l[0].k: \"" + text + "\": what the template gives is not one value in YAML"
				if got.Err == nil || !strings.HasPrefix(got.Err.Error(), start) || strings.Contains(got.Err.Error(), "secret") {
					t.Errorf("got %v", got.Err)
				}
				return
			}
			if got.Err != nil {
				t.Fatal(got.Err)
			}
			if diff := cmp.Diff([]any{map[string]any{"k": want}}, got.Options.Helm.Values.Data["l"]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The key of a map is a text, whatever it looks like.
func TestKeysThatAreNumbers(t *testing.T) {
	got := assign(t, toAll(helmValues(map[string]any{"${ .ClusterLabels.a }": "x", "${ .ClusterLabels.b }": "y"})), cluster("c", "a", "3", "b", "on"))
	if got[0].Err != nil {
		t.Fatal(got[0].Err)
	}
	if diff := cmp.Diff(map[string]any{"3": "x", "true": "y"}, got[0].Options.Helm.Values.Data); diff != "" {
		t.Error(diff)
	}
}

// Large values in YAML must not become larger than templates may make them.
func TestAliasesInTemplateValues(t *testing.T) {
	options := helmValues(nil)
	options.Helm.TemplateValues = map[string]string{"good": "{a: &x [1], b: *x}", "a": "[&a " + strings.Repeat("x", 1000) + strings.Repeat(", *a", 100_000) + "]"}
	got := assign(t, toAll(options), cluster("c"))
	if got[0].Err == nil || !strings.Contains(got[0].Err.Error(), "helm.templateValues.a") || strings.Contains(got[0].Err.Error(), "good") {
		t.Errorf("got %v", got[0].Err)
	}
}

func TestTemplatesInKeys(t *testing.T) {
	got := assign(t, toAll(helmValues(map[string]any{"host-${ .ClusterName }": 1})), subject())
	if diff := cmp.Diff(map[string]any{"host-prod": 1}, got[0].Options.Helm.Values.Data); diff != "" {
		t.Error(diff)
	}
}

func TestClusterWithoutLabelsIsTemplatedToo(t *testing.T) {
	got := assign(t, toAll(helmValues(map[string]any{"a": "${ .ClusterName }"})), cluster("bare"))
	if got[0].Err != nil || got[0].Options.Helm.Values.Data["a"] != "bare" {
		t.Errorf("got %+v", got[0])
	}
}

func TestTemplateValues(t *testing.T) {
	options := helmValues(map[string]any{"hosts": []any{"old"}, "net": map[string]any{"a": 1}, "kept": 1})
	options.Helm.TemplateValues = map[string]string{
		"hosts": "- ${ .ClusterName }.example.com\n",
		"net":   "b: ${ .ClusterValues.size }",
	}
	got := assign(t, toAll(options), subject())
	if got[0].Err != nil {
		t.Fatal(got[0].Err)
	}
	want := map[string]any{"hosts": []any{"prod.example.com"}, "net": map[string]any{"b": 3.0}, "kept": 1}
	if diff := cmp.Diff(want, got[0].Options.Helm.Values.Data); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]any{"a": 1}, options.Helm.Values.Data["net"]); diff != "" {
		t.Errorf("the values of the bundle were changed: %s", diff)
	}
	if got[0].Options.Helm.TemplateValues != nil {
		t.Error("templates that were filled in must not stay")
	}
}

// A label is filled in all the same, as in Rancher Fleet, since that form of it
// can be nothing else.
func TestLabelsWithoutPreProcessing(t *testing.T) {
	options := helmValues(map[string]any{
		"env": "global.fleet.clusterLabels.env", "none": "global.fleet.clusterLabels.nope", "list": []any{map[string]any{"env": "global.fleet.clusterLabels.env"}},
		"shell": "${HOME} ${ .ClusterName }", "${ .ClusterName }": "${", "deep": map[string]any{"${": "${ if }"},
	})
	options.Helm.DisablePreProcess = true
	options.Helm.TemplateValues = map[string]string{"shell": "${ .ClusterName }"}
	got := assign(t, toAll(options), subject())
	if got[0].Err != nil {
		t.Fatal(got[0].Err)
	}
	want := map[string]any{
		"env": "prod", "none": "", "list": []any{map[string]any{"env": "prod"}},
		"shell": "${HOME} ${ .ClusterName }", "${ .ClusterName }": "${", "deep": map[string]any{"${": "${ if }"},
	}
	if diff := cmp.Diff(want, got[0].Options.Helm.Values.Data); diff != "" {
		t.Error(diff)
	}
}

func TestDisablePreProcess(t *testing.T) {
	options := helmValues(map[string]any{"a": "${ .Nope }"})
	options.Helm.DisablePreProcess = true
	got := assign(t, toAll(options), subject())
	if got[0].Err != nil || got[0].Options.Helm.Values.Data["a"] != "${ .Nope }" {
		t.Errorf("got %+v", got[0])
	}
}

func TestTemplateErrorHoldsBackOneCluster(t *testing.T) {
	good := cluster("good", "region", "eu")
	got := assign(t, toAll(helmValues(map[string]any{"ingress": map[string]any{"host": "${ .ClusterLabels.region }.x"}})), cluster("bad"), good)
	want := `cluster fleet-default/bad: helm.values.ingress.host: "${ .ClusterLabels.region }": the cluster has no label "region"; ` +
		`set it with: kubectl label clusters.fleet.cattle.io -n fleet-default bad region=VALUE, or use ${ get .ClusterLabels "region" }, which may be empty`
	if got[0].Err == nil || got[0].Err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", got[0].Err, want)
	}
	if fault.KindOf(got[0].Err) != fault.Stalled || got[0].Options != nil {
		t.Errorf("the cluster must be stalled: %+v", got[0])
	}
	if got[1].Err != nil || got[1].Options.Helm.Values.Data["ingress"].(map[string]any)["host"] != "eu.x" {
		t.Errorf("its neighbour must go on: %+v", got[1])
	}
}

func TestTemplateErrors(t *testing.T) {
	for name, tt := range map[string]struct{ in, want string }{
		"label through index":    {`${ index .ClusterLabels "a/b" }`, `the cluster has no label "a/b"`},
		"label through root":     {`${ with 1 }${ $.ClusterLabels.zone }${ end }`, `the cluster has no label "zone"`},
		"annotation":             {`${ .ClusterAnnotations.team }`, `the cluster has no annotation "team"`},
		"cluster values":         {`${ .ClusterValues.dns }`, `the cluster has no "dns" in spec.templateValues; add it to the Cluster fleet-default/prod`},
		"deep cluster values":    {`${ .ClusterValues.net.dns }`, `map has no entry for key "dns"`},
		"syntax":                 {`${ if }`, `helm.values.key: "${ if }": not a valid template`},
		"environment":            {`${ env "HOME" }`, `function "env" not defined`},
		"time":                   {`${ now }`, `now gives something else each time`},
		"chance":                 {`${ randAlphaNum 5 }`, `randAlphaNum gives something else each time`},
		"endless list":           {`${ until 1000000000 }`, `more items than a template may make up`},
		"endless loop":           {`${ range until 9999 }${ range until 9999 }${ end }${ end }`, `take more than 100000 turns`},
		"endless loop over int":  {`${ range 1000000000000 }${ end }`, `take more than 100000 turns`},
		"endless text":           {`${ repeat 1000000000 "ab" }`, `longer than 1048576 bytes`},
		"long text":              {`${ range until 9999 }${ repeat 1000 "a" }${ end }`, `longer than 1048576 bytes`},
		"templates call another": {`${ define "a" }${ template "a" }${ end }${ template "a" }`, `define, block and template cannot be used`},
		"function fails":         {`${ fail "no such site" }`, `no such site`},
	} {
		t.Run(name, func(t *testing.T) {
			got := assign(t, toAll(helmValues(map[string]any{"key": tt.in})), subject())
			if len(got) != 1 || got[0].Err == nil || !strings.Contains(got[0].Err.Error(), tt.want) {
				t.Errorf("got %+v, want %q", got[0].Err, tt.want)
			}
		})
	}
}

// A value may hold a password beside its template; errors reach conditions,
// events and logs.
func TestErrorsShowNoTextBesideTheTemplate(t *testing.T) {
	for _, text := range []string{
		"postgres://app:hunter2@${ .ClusterLabels.db }/x",
		"${ .ClusterName }:hunter2@${ .ClusterLabels.db }/hunter2",
		"hunter2 ${ if } hunter2",
		"hunter2 ${ .ClusterName hunter2",
		"hunter2 ${ hunter2 ${ .ClusterName }",
		`hunter2 ${ fail "no" } hunter2`,
	} {
		options := helmValues(map[string]any{"url": text})
		options.Helm.TemplateValues = map[string]string{"a": "[" + text, "b": "[hunter2, ${ .ClusterName }"}
		got := assign(t, toAll(options), subject())
		if got[0].Err == nil || strings.Contains(strings.ReplaceAll(got[0].Err.Error(), "function \"hunter2\"", ""), "hunter2") {
			t.Errorf("%s: got %v", text, got[0].Err)
		}
	}
}

func TestTwoKeysBecomeOne(t *testing.T) {
	got := assign(t, toAll(helmValues(map[string]any{"prod": 1, "${ .ClusterName }": 2})), subject())
	if got[0].Err == nil || !strings.Contains(got[0].Err.Error(), `helm.values: two keys become "prod"`) {
		t.Errorf("got %v", got[0].Err)
	}
}

func TestTemplateValuesThatAreNoYAML(t *testing.T) {
	options := fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{TemplateValues: map[string]string{"a": "b: [${ .ClusterName }"}}}
	got := assign(t, toAll(options), subject())
	if got[0].Err == nil || !strings.Contains(got[0].Err.Error(), `helm.templateValues.a: "${ .ClusterName }": what the template gives is not valid YAML`) {
		t.Errorf("got %v", got[0].Err)
	}
}

func FuzzTemplates(f *testing.F) {
	for _, seed := range []string{"", "${", "${ . }", "${ .ClusterLabels.x }", "${ range $i := until 9 }${ $i }${ end }", "global.fleet.clusterLabels.", "${/* c */}", "${- .ClusterName -}"} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, key, value string) {
		spec := toAll(helmValues(map[string]any{key: value, "list": []any{value}}))
		first, err := Assign(Input{Bundle: bundleOf(spec), Clusters: []Cluster{subject()}})
		if err != nil {
			t.Fatal(err)
		}
		again := assign(t, spec, subject())
		if fmt.Sprint(first[0].Err) != fmt.Sprint(again[0].Err) || !cmp.Equal(first[0].Options, again[0].Options) {
			t.Errorf("not stable: %+v and %+v", first, again)
		}
		if (first[0].Err == nil) == (first[0].Options == nil) {
			t.Errorf("want either options or an error: %+v", first)
		}
		if _, err := json.Marshal(first[0].Options); err != nil {
			t.Errorf("options that cannot be stored: %v", err)
		}
	})
}

func BenchmarkAssign(b *testing.B) {
	var clusters []Cluster
	for i := range 5000 {
		clusters = append(clusters, cluster(fmt.Sprintf("c%d", i), "env", []string{"prod", "dev"}[i%2], "region", fmt.Sprint(i%10)))
	}
	for name, value := range map[string]string{"plain": "x", "templated": "${ .ClusterLabels.region }", "text": "${ .ClusterLabels.env }.example.com"} {
		b.Run(name, func(b *testing.B) {
			spec := toAll(helmValues(map[string]any{"a": value, "b": map[string]any{"c": value}}))
			spec.Targets = append([]fleet.BundleTarget{custom("p", "prod", false)}, spec.Targets...)
			spec.TargetRestrictions = []fleet.BundleTargetRestriction{{ClusterSelector: selector()}}
			m, err := NewMatcher(bundleOf(spec))
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if len(m.Assign(clusters)) != len(clusters) {
					b.Fatal("not all")
				}
			}
		})
	}
}
