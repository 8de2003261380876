package kustomize_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/render/kustomize"
	"github.com/flotilla-sh/flotilla/internal/render/rendertest"
)

const (
	outside = "is outside the bundle, and nothing is fetched while a bundle is rendered: copy it into the repository"
	absent  = "is not in the bundle: correct the path; what is outside the bundle's directory cannot be used"
	program = "is a plugin, and no program is run while a bundle is rendered: use one of Kustomize's own (apiVersion: builtin), or commit what the plugin makes"
)

// A service that builds what many people commit must not reach for anything
// that is not in the bundle, nor run anything. All is told at once.
func TestNothingLeavesTheBundle(t *testing.T) {
	for name, tt := range map[string]struct {
		files string
		want  []string
	}{
		"remote bases": {
			"-- kustomization.yaml --\nresources:\n- https://github.com/x/y//base?ref=v1\n- git@example.com:x/y.git\n- github.com/x/y\nbases: [ssh://example.com/x]\ncomponents:\n- x/y?ref=v1\n",
			[]string{"3: https://github.com/x/y//base?ref=v1 " + outside, "4: git@example.com:x/y.git " + outside, "5: github.com/x/y " + outside, "6: ssh://example.com/x " + outside, "8: x/y?ref=v1 " + outside},
		},
		"remote files": {
			"-- kustomization.yaml --\npatches:\n- path: https://example.com/p.yaml\nconfigMapGenerator:\n- name: a\n  files: ['k=HTTP://example.com/a']\n  envs: [http://example.com/e]\nsecretGenerator:\n- name: b\n  env: http:example.com\ncrds: [https://example.com/c]\nopenapi:\n  path: https://example.com/o\nreplacements:\n- path: https://example.com/r\npatchesStrategicMerge: [https://example.com/s]\n",
			[]string{"3: https://example.com/p.yaml " + outside, "6: HTTP://example.com/a " + outside, "7: http://example.com/e " + outside, "10: http:example.com " + outside, "11: https://example.com/c " + outside, "13: https://example.com/o " + outside, "15: https://example.com/r " + outside, "16: https://example.com/s " + outside},
		},
		"behind an alias": {
			"-- kustomization.yaml --\ncommonAnnotations: {a: &u 'https://example.com/p.yaml'}\npatches:\n- path: *u\n",
			[]string{"2: https://example.com/p.yaml " + outside},
		},
		"behind a merge key": {
			"-- kustomization.yaml --\ngeneratorOptions: &g\n  annotations: {path: x}\npatches:\n- &p {path: https://example.com/p.yaml}\n- <<: *p\n",
			[]string{"5: https://example.com/p.yaml " + outside, "5: https://example.com/p.yaml " + outside},
		},
		"a file that is called like a URL": {
			"-- kustomization.yaml --\nresources: ['https://example.com/a.yaml']\n-- https:/example.com/a.yaml --\n{}\n",
			[]string{"2: https://example.com/a.yaml " + outside},
		},
		"files outside": {
			"-- kustomization.yaml --\nresources: [../a.yaml, ../../etc, /etc/passwd]\npatches:\n- path: /etc/passwd\nconfigMapGenerator:\n- name: a\n  files: [passwd=../../../etc/passwd]\n",
			[]string{"2: ../a.yaml " + absent, "2: ../../etc " + absent, "2: /etc/passwd " + absent, "4: /etc/passwd " + absent, "7: ../../../etc/passwd " + absent},
		},
		"charts": {
			"-- kustomization.yaml --\nhelmGlobals: {chartHome: x}\nhelmCharts:\n- name: x\n",
			[]string{"2: helmGlobals is not supported, because it runs helm", "3: helmCharts is not supported, because it runs helm"},
		},
		"plugins": {
			"-- kustomization.yaml --\ngenerators:\n- g.yaml\n- sub\ntransformers:\n- |-\n  apiVersion: example.com/v1\n  kind: Inline\n  metadata: {name: x}\nvalidators: [gone.yaml]\n" +
				"-- g.yaml --\napiVersion: builtin\nkind: HelmChartInflationGenerator\nmetadata: {name: x}\n---\napiVersion: v1\nkind: Exec\nmetadata:\n  annotations: {config.kubernetes.io/function: 'exec: {path: ./x}'}\n" +
				"-- sub/kustomization.yaml --\nresources: [t.yaml]\n-- sub/t.yaml --\napiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: p}\npath: https://example.com/p.yaml\n",
			[]string{"g.yaml:2: HelmChartInflationGenerator is not supported", "g.yaml:6: Exec " + program, "sub/t.yaml:4: https://example.com/p.yaml " + outside, "8: Inline " + program, "10: gone.yaml " + absent},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.HasPrefix(tt.files, "-- kustomization") {
				tt.files = strings.Replace(tt.files, "-- kustomization.yaml --\n", "-- kustomization.yaml --\n# first line\n", 1)
			}
			_, err := (&kustomize.Builder{}).Build(context.Background(), kustomize.Input{Files: rendertest.Files(tt.files)})
			if fault.KindOf(err) != fault.Stalled {
				t.Errorf("the error is to be for a human: %v", err)
			}
			var got []string
			for _, note := range fault.Notes(err) {
				got = append(got, strings.TrimPrefix(note.String(), "kustomization.yaml:"))
			}
			for i := range min(len(got), len(tt.want)) {
				got[i] = got[i][:min(len(got[i]), len(tt.want[i]))]
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestBuildsWhatIsInTheBundle(t *testing.T) {
	files := rendertest.Files(`-- base/kustomization.yaml --
resources: [a.yaml]
-- base/a.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
data: {url: "https://example.com"}
-- component/kustomization.yaml --
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
commonAnnotations: {path: "https://example.com/p.yaml"}
-- prod/kustomization.yaml --
resources: [../base]
components: [../component]
configMapGenerator:
- name: gen
  literals: [files=https://example.com]
  files: [note=note.txt]
transformers:
- prefix.yaml
- |-
  apiVersion: builtin
  kind: LabelTransformer
  metadata: {name: l}
  labels: {path: none}
  fieldSpecs: [{path: metadata/labels, create: true}]
patches:
- target: {kind: ConfigMap, name: a}
  patch: |-
    - {op: add, path: /data/more, value: "https://example.com/x.git"}
-- prod/note.txt --
hello
-- prod/prefix.yaml --
apiVersion: builtin
kind: PrefixTransformer
metadata: {name: p}
prefix: prod-
fieldSpecs: [{path: metadata/name}]
`)
	objects, err := (&kustomize.Builder{}).Build(context.Background(), kustomize.Input{Files: files, Dir: "prod"})
	if err != nil || len(objects) != 2 {
		t.Errorf("got %d objects, %v", len(objects), err)
	}
}

// Aliases can make much of little: ten values of ten, and so on.
func TestAliasesAreBounded(t *testing.T) {
	var text strings.Builder
	text.WriteString("-- kustomization.yaml --\nx0: &x0 [a]\n")
	for i := 1; i < 12; i++ {
		name, below := string(rune('a'+i)), "*x0"
		if i > 1 {
			below = "*" + string(rune('a'+i-1))
		}
		text.WriteString("x" + name + ": &" + name + " [" + strings.TrimSuffix(strings.Repeat(below+", ", 10), ", ") + "]\n")
	}
	_, err := (&kustomize.Builder{}).Build(context.Background(), kustomize.Input{Files: rendertest.Files(text.String())})
	if err == nil || !strings.Contains(err.Error(), "kustomization.yaml:1: the kustomization is too large") {
		t.Errorf("got %v", err)
	}
}
