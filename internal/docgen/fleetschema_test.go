package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-sh/flotilla/docs/reference"
	"github.com/flotilla-sh/flotilla/pkg/fleetyaml"
)

func shippedSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(reference.FleetSchema()))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("fleet.yaml.json", document); err != nil {
		t.Fatal(err)
	}
	compiled, err := compiler.Compile("fleet.yaml.json")
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

func validate(t *testing.T, s *jsonschema.Schema, text string) error {
	t.Helper()
	asJSON, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(asJSON)))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(value)
}

func TestSchemaIsUpToDate(t *testing.T) {
	kinds, err := load(shippedCRDs)
	if err != nil {
		t.Fatal(err)
	}
	want, err := fleetSchema(kinds, shippedTypes)
	if err != nil {
		t.Fatal(err)
	}
	if reference.FleetSchema() != string(want) {
		t.Error("docs/reference/fleet-schema.json is not up to date: run make generate")
	}
}

func TestEveryFieldOfFleetYAMLIsDescribed(t *testing.T) {
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(reference.FleetSchema()))
	if err != nil {
		t.Fatal(err)
	}
	var visit func(path string, n node)
	visit = func(path string, n node) {
		for name, below := range child(n, "properties") {
			below := below.(node)
			if below["description"] == nil {
				t.Errorf("%s.%s has no description", path, name)
			}
			visit(path+"."+name, below)
		}
		if items := child(n, "items"); items != nil {
			visit(path+"[]", items)
		}
	}
	visit("", document.(node))
}

// What is in the repository is what people copy.
func TestSchemaTakesEveryExample(t *testing.T) {
	s, found := shippedSchema(t), 0
	for _, root := range []string{"../../examples", "../../bundles"} {
		err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.Name() != "fleet.yaml" {
				return err
			}
			found++
			text, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			if err := validate(t, s, string(text)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found < 4 {
		t.Errorf("only %d files were found", found)
	}
}

// An editor must mark what the hub refuses or ignores, and nothing else.
func TestSchemaAgreesWithTheParser(t *testing.T) {
	s := shippedSchema(t)
	for name, tt := range map[string]struct {
		text string
		good bool
	}{
		"nothing":                      {"{}", true},
		"much":                         {much, true},
		"percentages and numbers":      {"rolloutStrategy: {maxUnavailable: 10%, maxUnavailablePartitions: 1}", true},
		"free values":                  {"helm: {values: {a: [1, {b: c}], d: 1.5}}", true},
		"unknown field":                {"pausd: true", false},
		"unknown field far below":      {"targetCustomizations: [{clusterName: a, helm: {valeus: {}}}]", false},
		"a text for an object":         {"helm: chart", false},
		"a text for a boolean":         {`paused: "yes"`, false},
		"an object for a list":         {"dependsOn: {name: a}", false},
		"values that are a list":       {"helm: {values: [a]}", false},
		"unknown mode":                 {"targetCustomizationMode: Any", false},
		"unknown state":                {"dependsOn: [{name: a, acceptedStates: [Done]}]", false},
		"unknown place to render":      {"render: here", false},
		"a release that Helm refuses":  {"helm: {releaseName: Web_1}", false},
		"a release that is too long":   {"helm: {releaseName: " + strings.Repeat("a", 54) + "}", false},
		"field of the controller":      {"contentsId: x", false},
		"label that is no text":        {"labels: {a: [b]}", false},
		"image scan without a unit":    {"imageScans: [{image: a, interval: 5 minutes}]", false},
		"image scan with its interval": {"imageScans: [{image: a, tagName: a, interval: 5m30s}]", true},
	} {
		t.Run(name, func(t *testing.T) {
			schemaErr := validate(t, s, tt.text)
			_, warnings, err := fleetyaml.Parse([]byte(tt.text), "fleet.yaml")
			if (schemaErr == nil) != tt.good {
				t.Errorf("the schema says %v", schemaErr)
			}
			if accepted := err == nil && len(warnings) == 0; accepted != tt.good {
				t.Errorf("the parser says %v, %v", err, warnings)
			}
		})
	}
}

const much = `
name: web
labels: {team: shop}
metadata: {labels: {a: b}, annotations: {c: d}}
defaultNamespace: web
createNamespace: false
helm:
  chart: chart
  releaseName: web
  values: {replicas: 2}
  valuesFiles: [prod.yaml]
  valuesFrom: [{secretKeyRef: {name: a, namespace: b, key: c}}]
  templateValues: {zone: "${ .ClusterLabels.zone }"}
  timeoutSeconds: 60
kustomize: {dir: overlays/prod}
yaml: {overlays: [prod]}
diff:
  comparePatches:
  - {apiVersion: apps/v1, kind: Deployment, name: a, jsonPointers: [/spec/replicas], operations: [{op: remove, path: /spec}]}
ignore: {conditions: [{type: Ready, status: "False"}]}
correctDrift: {enabled: true}
dependsOn: [{name: db, acceptedStates: [Ready, Modified]}, {selector: {matchLabels: {a: b}}}]
targetCustomizationMode: AllMatches
targets: [{name: t, clusterGroup: a}]
targetCustomizations:
- name: prod
  clusterSelector: {matchExpressions: [{key: env, operator: In, values: [prod]}]}
  doNotDeploy: false
  helm: {values: {replicas: 3}}
overrideTargets: [{clusterName: berlin}]
downstreamResources: [{kind: Secret, name: pull}]
rolloutStrategy: {autoPartitionSize: 10, partitions: [{name: a, clusterSelector: {}}]}
namespaceLabels: {a: b}
keepResources: true
`
