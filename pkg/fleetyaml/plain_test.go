package fleetyaml

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// Values mean the same in fleet.yaml as in the values.yaml of a chart, which
// Helm reads: keys and all.
func TestValuesAreWhatHelmReads(t *testing.T) {
	for _, text := range strings.Fields(`y Y yes Yes YES n N no No NO on On ON off Off OFF true True TRUE false False FALSE
		"y" 'no' yEs nO oN tRUE 0 1 -1 +1 007 0x10 0o17 0b11 1_000 1.10 1e3 .5 1. ~ null Null 12:30 2020-01-01 1.2.3 text "" '~'`) {
		got, warnings, err := Values([]byte("value: "+text+"\nlist: ["+text+"]\n"), "values.yaml")
		if err != nil || len(warnings) > 0 {
			t.Errorf("%s: %v %v", text, warnings, err)
		}
		sameAsHelm(t, text, "value: "+text+"\nlist: ["+text+"]\n", got)
	}
	for _, text := range strings.Fields(`y Y yes No on OFF true True "on" 'y' 0 -1 007 0x10 0o17 1.10 1e3 .5 12:30 2020-01-01 text`) {
		file := "below: {" + text + ": 1}\n" + text + ": {" + text + ": x}\n"
		got, _, err := Values([]byte(file), "values.yaml")
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		sameAsHelm(t, text, file, got)
	}
}

func sameAsHelm(t *testing.T, text, file string, got map[string]any) {
	t.Helper()
	want := map[string]any{}
	if err := yaml.Unmarshal([]byte(file), &want); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	// Numbers are compared as JSON has them.
	plain, err := yaml.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	read := map[string]any{}
	if err := yaml.Unmarshal(plain, &read); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, read); diff != "" {
		t.Errorf("%s: %s", text, diff)
	}
}

func TestBooleansOfYAML11(t *testing.T) {
	for text, want := range map[string]bool{"y": true, "Y": true, "n": false, "N": false, "off": false} {
		got, warnings, err := Parse([]byte(fmt.Sprintf("keepResources: %s\n", text)), "fleet.yaml")
		if err != nil || len(warnings) > 0 || got.KeepResources != want {
			t.Errorf("%s: %v %v", text, warnings, err)
		}
	}
}

// Texts stay as they are written, and a label "true" is not the label "yes".
func TestUnquotedBooleansInTexts(t *testing.T) {
	const file = "targetCustomizations:\n- clusterSelector:\n    matchLabels: {gpu: yes, a: true, b: \"yes\", c: 'n'}\n    matchExpressions:\n    - {key: x, operator: In, values: [True, z]}\n"
	got, warnings, err := Parse([]byte(file), "fleet.yaml")
	if err != nil {
		t.Fatal(err)
	}
	selector := got.TargetCustomizations[0].ClusterSelector
	if diff := cmp.Diff(map[string]string{"gpu": "yes", "a": "true", "b": "yes", "c": "n"}, selector.MatchLabels); diff != "" {
		t.Error(diff)
	}
	var said []string
	for _, w := range warnings {
		said = append(said, w.String())
	}
	if len(said) != 2 || !strings.HasPrefix(said[0], "fleet.yaml:3: ") || !strings.Contains(said[0], `the text "yes" here, and "true" for Rancher Fleet`) || !strings.HasPrefix(said[1], "fleet.yaml:5: ") {
		t.Errorf("%q", said)
	}
}
