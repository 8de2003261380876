package content

import (
	"testing"

	"github.com/flotilla-sh/flotilla/internal/source"
)

func TestWhichFilesAreOpen(t *testing.T) {
	const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	for name, tt := range map[string]struct {
		path, text string
		open       bool
	}{
		"object":                     {"a.yaml", configMap, true},
		"objects":                    {"a.yaml", "# text\n---\n" + configMap + "---\n\n---\napiVersion: apps/v1\nkind: \"Deployment\" # x\n", true},
		"template":                   {"templates/a.yaml", "{{- if .Values.a }}\napiVersion: {{ include \"v\" . }}\nkind: Deployment\n{{- end }}\n", true},
		"chart":                      {"Chart.yaml", "name: a", true},
		"reference to a kind":        {"a.yaml", "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nsubjects:\n- kind: ServiceAccount\n  name: a\n", true},
		"definition":                 {"a.yaml", "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec:\n  properties:\n    kind:\n      type: string\n", true},
		"secret":                     {"a.yaml", "apiVersion: v1\nkind: Secret\n", false},
		"secret behind":              {"a.yaml", configMap + "---\n{apiVersion: v1, kind: Secret, stringData: {a: b}}\n", false},
		"secret on the line":         {"a.yaml", configMap + "--- {apiVersion: v1, kind: Secret}\n", false},
		"secret after an end":        {"a.yaml", configMap + "...\n{\"kind\": \"Secret\"}\n", false},
		"disguised":                  {"a.yaml", configMap + "---\n{apiVersion: v1, \"k\\u0069nd\": Secret}\n", false},
		"anchored":                   {"a.yaml", "apiVersion: v1\nkind: &k Secret\n", false},
		"folded":                     {"a.yaml", "apiVersion: v1\nkind: >-\n  Secret\n", false},
		"list":                       {"a.yaml", "apiVersion: v1\nkind: List\nitems:\n- kind: Secret\n", false},
		"list of anything":           {"a.yaml", "apiVersion: v1\nkind: List\nitems: []\n", false},
		"kustomization":              {"a.yaml", "kind: Kustomization\napiVersion: kustomize.config.k8s.io/v1beta1\nsecretGenerator: [{literals: [a=b]}]\n", false},
		"kustomization by its name":  {"base/kustomization.yml", "secretGenerator: [{literals: [a=b]}]\nkind: ConfigMap\napiVersion: v1\n", false},
		"component":                  {"a.yaml", "kind: Component\napiVersion: kustomize.config.k8s.io/v1alpha1\n", false},
		"generator":                  {"a.yaml", "apiVersion: builtin\nkind: SecretGenerator\nliterals: [a=b]\n", false},
		"generator of another name":  {"a.yaml", "apiVersion: builtin\nkind: ConfigMap\nliterals: [a=b]\n", false},
		"kubectl's":                  {"a.yaml", "apiVersion: v1\nkind: Config\nusers: [{user: {token: a}}]\n", false},
		"values":                     {"values.yaml", "apiVersion: v1\nkind: Deployment\npassword: a\n", false},
		"values that say a kind":     {"prod.yaml", "kind: Deployment\npassword: a\n", false},
		"template of any kind":       {"templates/a.yaml", "apiVersion: v1\nkind: {{ .Values.kind }}\n", false},
		"template of two kinds":      {"templates/a.yaml", "apiVersion: v1\n{{ if .Values.a }}kind: Secret{{ else }}\nkind: ConfigMap\n{{ end }}", false},
		"part of templates":          {"templates/_helpers.tpl", configMap, false},
		"text":                       {"a.txt", configMap, false},
		"json":                       {"a.json", `{"kind": "ConfigMap", "apiVersion": "v1"}`, false},
		"text beside a manifest":     {"a.yaml", configMap + "---\npassword: a\n", false},
		"a comment that says a kind": {"a.yaml", "# kind: Deployment\npassword: a\n", false},
	} {
		if got := !mayHoldSecret(source.File{Path: tt.path, Data: []byte(tt.text)}); got != tt.open {
			t.Errorf("%s: open is %t", name, got)
		}
	}
}
