package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const (
	shippedCRDs  = "../../charts/flotilla-crd/templates"
	shippedTypes = "../../pkg/fleetyaml/types.go"
)

func TestRowsOfATable(t *testing.T) {
	for name, tt := range map[string]struct {
		schema string
		want   string
	}{
		"required and plain": {
			`{required: [repo], properties: {repo: {type: string, description: "Repo is\n the URL."}, paused: {type: boolean}}}`,
			"| `paused` | boolean |  |  |\n| `repo` | string | required | Repo is the URL. |\n",
		},
		"lists and maps go down": {
			`{properties: {a: {type: array, items: {type: object, properties: {m: {additionalProperties: {type: string}}}}}}}`,
			"| `a` | list of object |  |  |\n| `a[].m` | map of string |  |  |\n",
		},
		"enum and default": {
			`{properties: {mode: {type: string, enum: [One, Two], default: One}}}`,
			"| `mode` | `One`, `Two` | `One` |  |\n",
		},
		"limits and rules": {
			`{properties: {a: {type: string, description: A., maxLength: 5, x-kubernetes-validations: [{rule: "true", message: must be a|b}]}}}`,
			"| `a` | string |  | A. At most 5 characters. Must be a\\|b. |\n",
		},
		"duration": {
			`{properties: {a: {type: string, description: A., maxLength: 32, x-kubernetes-validations: [{rule: "duration(self) > x", message: must be}]}}}`,
			"| `a` | duration |  | A. Must be. |\n",
		},
		"ours": {
			`{properties: {a: {x-kubernetes-int-or-string: true, description: "Flotilla: A is ours."}}}`,
			"| `a` | integer or string |  | **Flotilla.** A is ours. |\n",
		},
		"formats": {
			`{properties: {a: {type: string, format: byte}, b: {type: string, format: date-time}, c: {type: object, x-kubernetes-preserve-unknown-fields: true}}}`,
			"| `a` | base64 |  |  |\n| `b` | time |  |  |\n| `c` | free object |  |  |\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var s apiextensionsv1.JSONSchemaProps
			if err := yaml.Unmarshal([]byte(tt.schema), &s); err != nil {
				t.Fatal(err)
			}
			p := &page{}
			p.fields("", &s, "")
			if diff := cmp.Diff(tt.want, p.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPageOfTheShippedDefinitions(t *testing.T) {
	kinds, err := load(shippedCRDs)
	if err != nil {
		t.Fatal(err)
	}
	got, err := render(kinds)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| [GitRepo](#gitrepo) | Namespaced | GitRepo is a Git repository that is watched, and whose directories become bundles | Name, Repo, Commit, BundleDeployments-Ready, Status |",
		"| `repo` | string | required | Repo is the URL of the repository",
		"| … | [spec of a Bundle](#bundle) |  | All fields of the spec of a Bundle. |",
		"| `options` | [deployment options](#deployment-options) |  |",
		"| `helm.releaseName` | string |",
		"| `interval` | duration | `15m` |",
		"### fields beside metadata",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

func TestEveryFieldIsDescribed(t *testing.T) {
	kinds, err := load(shippedCRDs)
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range kinds {
		undescribed(t, kind.Spec.Names.Kind, rootOf(kind))
	}
}

func undescribed(t *testing.T, path string, s *schema) {
	t.Helper()
	for name, property := range s.Properties {
		if property.Description == "" && name != "metadata" {
			t.Errorf("%s.%s has no description", path, name)
		}
		inner, suffix := innermost(&property)
		undescribed(t, path+"."+name+suffix, inner)
	}
}

func TestMissingDefinitions(t *testing.T) {
	dir := t.TempDir()
	err := run(dir, shippedTypes, dir)
	if err == nil || !strings.Contains(err.Error(), "no definitions in "+dir) {
		t.Errorf("got %v", err)
	}
}
