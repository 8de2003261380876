package render_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/flotilla-sh/flotilla/internal/render"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

func values(v map[string]any) fleet.BundleDeploymentOptions {
	return fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{Values: &fleet.GenericMap{Data: v}}}
}

func TestHelm(t *testing.T) {
	sub := func(condition string) string {
		return "-- Chart.yaml --\napiVersion: v2\nname: web\nversion: 1.2.3\ndependencies:\n- {name: db, version: 1.0.0" + condition + "}\n"
	}
	db := "-- charts/db/Chart.yaml --\napiVersion: v2\nname: db\nversion: 1.0.0\n-- charts/db/values.yaml --\nname: db\n-- charts/db/templates/a.yaml --\n" + configMap("{{ .Values.name }}-{{ .Capabilities.KubeVersion.Minor }}")
	for name, s := range map[string]situation{
		"values of the chart and of the bundle": {
			files:   web + "-- values.yaml --\nname: chart\nport: 80\n-- templates/a.yaml --\n" + configMap("{{ .Values.name }}-{{ .Values.port }}"),
			options: values(map[string]any{"name": "bundle"}), want: []string{"ConfigMap default/bundle-80"},
		},
		"large numbers have no exponent": {
			files:   web + "-- values.yaml --\nbig: 12345678\n-- templates/a.yaml --\n" + configMap("n-{{ .Values.big }}-{{ .Values.other }}"),
			options: values(map[string]any{"other": 1000000.0}), want: []string{"ConfigMap default/n-12345678-1000000"},
		},
		"the release": {
			files:   web + "-- templates/a.yaml --\n" + configMap("{{ .Release.Name }}-{{ .Release.Namespace }}-{{ .Release.Revision }}-{{ .Release.IsInstall }}-{{ .Release.IsUpgrade }}"),
			options: fleet.BundleDeploymentOptions{TargetNamespace: "ns", Helm: &fleet.HelmOptions{ReleaseName: "rel"}},
			want:    []string{"ConfigMap ns/rel-ns-1-true-false"},
		},
		"a chart in a directory": {
			files:   strings.ReplaceAll(web+"-- templates/a.yaml --\n"+configMap("c"), "-- ", "-- charts/web/") + "-- a.yaml --\n" + configMap("ignored"),
			options: fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{Chart: "./charts/web"}}, want: []string{"ConfigMap default/c"},
		},
		"notes, hooks, tests and partials": {
			files: web + "-- templates/NOTES.txt --\nThank you\n-- templates/_p.tpl --\n{{ define \"x\" }}c{{ end }}\n-- templates/a.yaml --\n" + configMap(`{{ include "x" . }}`) + "---\n" +
				strings.Replace(configMap("hook"), "metadata:", "metadata:\n  annotations: {helm.sh/hook: 'pre-install, post-upgrade'}", 1) + "---\n" +
				strings.Replace(configMap("test"), "metadata:", "metadata:\n  annotations: {helm.sh/hook: test}", 1),
			want: []string{"ConfigMap default/c", "ConfigMap default/hook"},
		},
		"an enabled dependency":          {files: sub(", condition: db.on") + db, options: values(map[string]any{"db": map[string]any{"on": true}}), caps: render.Capabilities{KubeVersion: "v1.36.3"}, want: []string{"ConfigMap default/db-36"}},
		"a disabled dependency":          {files: sub(", condition: db.on") + db, options: values(map[string]any{"db": map[string]any{"on": false}})},
		"an absent disabled dependency":  {files: sub(", condition: db.on"), options: values(map[string]any{"db": map[string]any{"on": false}})},
		"an absent dependency":           {files: sub(""), err: `the chart web depends on db 1.0.0, which is not in its charts/ directory: run "helm dependency build"`},
		"no chart there":                 {files: "-- a.yaml --\n" + configMap("a"), options: fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{Chart: "x"}}, err: `helm.chart is "x" and the bundle has no x/Chart.yaml`},
		"a chart from elsewhere":         {files: "-- a.yaml --\n" + configMap("a"), options: fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{Repo: "https://charts.example.com", Chart: "web", Version: "1"}}, err: "the chart https://charts.example.com web 1 is not in the bundle"},
		"a library":                      {files: "-- Chart.yaml --\napiVersion: v2\nname: lib\nversion: 1.2.3\ntype: library\n", err: "the chart lib in the bundle's directory is a library"},
		"no version":                     {files: "-- Chart.yaml --\napiVersion: v2\nname: web\n", err: "the chart in the bundle's directory cannot be loaded: validation: chart.metadata.version is required"},
		"another Kubernetes":             {files: web + "kubeVersion: '>=1.40'\n", caps: render.Capabilities{KubeVersion: "v1.36.3"}, err: "the chart web wants Kubernetes >=1.40 and the cluster has v1.36.3"},
		"values that the schema refuses": {files: web + "-- values.schema.json --\n{\"properties\": {\"port\": {\"type\": \"integer\"}}}\n", options: values(map[string]any{"port": "x"}), err: "the values do not fit values.schema.json: web: - at '/port': got string, want integer: correct helm.values"},
		"values that nobody checks": {
			files:   web + "-- values.schema.json --\n{\"properties\": {\"port\": {\"type\": \"integer\"}}}\n",
			options: fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{SkipSchemaValidation: true, Values: &fleet.GenericMap{Data: map[string]any{"port": "x"}}}},
		},
		"a value that is not set":         {files: web + "-- templates/a.yaml --\nx: 1\ny: {{ .Values.image.tag }}\n", err: "templates/a.yaml:2: .Values.image.tag cannot be read: what tag would be a part of is not set: set helm.values.image.tag"},
		"a value that the chart requires": {files: web + "-- templates/a.yaml --\n\n{{ required \"A password is required\" .Values.password }}\n", err: "templates/a.yaml:2: A password is required: the chart asks for this itself, set it under helm.values"},
		"in an included template":         {files: web + "-- templates/_h.tpl --\n{{ define \"x\" }}\n{{ .Values.a.b }}\n{{ end }}\n-- templates/a.yaml --\n{{ include \"x\" . }}\n", err: "templates/_h.tpl:2: .Values.a.b cannot be read: what b would be a part of is not set (included from templates/a.yaml:1)"},
		"an unknown function":             {files: web + "-- templates/a.yaml --\n\n{{ nope }}\n", err: "templates/a.yaml:2: function \"nope\" not defined: correct the template or the values"},
		"a template that is not closed":   {files: web + "-- templates/a.yaml --\n{{ if .Values.x }}\n", err: "templates/a.yaml:2: unexpected EOF"},
		"output that is no object":        {files: web + "-- templates/a.yaml --\n{{ if true }}\n\nfoo: {{ .Release.Name }}\n{{ end }}\n", err: "templates/a.yaml:3: this is no Kubernetes object"},
		"in a chart in a directory":       {files: strings.ReplaceAll(web+"-- templates/a.yaml --\n{{ nope }}\n", "-- ", "-- c/"), options: fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{Chart: "c"}}, err: "c/templates/a.yaml:1: function"},
	} {
		t.Run(name, func(t *testing.T) { s.check(t) })
	}
}

func TestHooks(t *testing.T) {
	as := func(events string) string {
		return strings.Replace(configMap("same"), "metadata:", "metadata:\n  annotations: {helm.sh/hook: '"+events+"'}", 1) + "---\n"
	}
	for name, s := range map[string]situation{
		"an object and hooks of one name": {
			files: web + "-- templates/a.yaml --\n" + as("pre-install") + as("post-upgrade,test") + configMap("same"),
			want:  []string{"ConfigMap default/same", "ConfigMap default/same", "ConfigMap default/same"},
		},
		"two hooks of one event":    {files: web + "-- templates/a.yaml --\n" + as("pre-install") + as("pre-install"), err: "ConfigMap default/same is in templates/a.yaml twice"},
		"crd-install is no hook":    {files: web + "-- templates/a.yaml --\n" + as("crd-install"), want: []string{"ConfigMap default/same"}},
		"in a plain file":           {files: "-- a.yaml --\n" + as("test") + as("pre-delete"), want: []string{"ConfigMap default/same"}},
		"rollback hooks never run":  {files: web + "-- templates/a.yaml --\n" + as("pre-rollback")},
		"Kustomize passes hooks by": {files: web + "-- templates/a.yaml --\n" + as("pre-install") + configMap("c") + "-- kustomization.yaml --\nnamePrefix: x-\n", want: []string{"ConfigMap default/same", "ConfigMap default/x-c"}},
	} {
		t.Run(name, func(t *testing.T) { s.check(t) })
	}
	s := situation{files: web + "-- templates/a.yaml --\n" + as("pre-lunch")}
	const want = "templates/a.yaml: ConfigMap same is a hook of the unknown event pre-lunch, and never runs"
	if got := s.check(t).Warnings; texts(got) != want {
		t.Errorf("warnings: %q", got)
	}
}

func TestWhatAChartAsksIsRecorded(t *testing.T) {
	caps := render.Capabilities{KubeVersion: "v1.36.3", APIs: []render.API{{GroupVersion: "policy/v1", Kind: "PodDisruptionBudget", Namespaced: true}}}
	for name, tt := range map[string]struct {
		template string // renders the name
		chart    string
		name     string
		asked    []string
	}{
		"nothing":            {template: "x", name: "x"},
		"an API":             {template: `{{ .Capabilities.APIVersions.Has "policy/v1" }}`, name: "true", asked: []string{"policy/v1"}},
		"a kind":             {template: `{{ .Capabilities.APIVersions.Has "policy/v1/PodDisruptionBudget" }}`, name: "true", asked: []string{"policy/v1/PodDisruptionBudget"}},
		"what is not there":  {template: `{{ .Capabilities.APIVersions.Has "nope/v1" }}`, name: "false", asked: []string{"nope/v1"}},
		"only what is asked": {template: `{{ if .Capabilities.APIVersions.Has "policy/v1" }}a{{ else }}{{ .Capabilities.APIVersions.Has "b/v1" }}{{ end }}`, name: "a", asked: []string{"policy/v1"}},
		"through a variable": {template: `{{ $c := .Capabilities }}{{ $c.APIVersions.Has "policy/v1" }}`, name: "true", asked: []string{"policy/v1"}},
		"the version":        {template: `{{ .Capabilities.KubeVersion.Version }}`, name: "v1.36.3", asked: []string{"kubeVersion"}},
		"its older name":     {template: `{{ .Capabilities.KubeVersion.GitVersion }}`, name: "v1.36.3", asked: []string{"kubeVersion"}},
		"printed":            {template: `{{ .Capabilities.KubeVersion }}`, name: "v1.36.3", asked: []string{"kubeVersion"}},
		"as a text":          {template: `{{ .Capabilities.KubeVersion | toString }}`, name: "v1.36.3", asked: []string{"kubeVersion"}},
		"compared":           {template: `{{ semverCompare ">=1.20-0" .Capabilities.KubeVersion.Version }}`, name: "true", asked: []string{"kubeVersion"}},
		"its parts":          {template: `{{ .Capabilities.KubeVersion.Major }}-{{ .Capabilities.KubeVersion.Minor }}`, name: "1-36", asked: []string{"kubeVersion.major", "kubeVersion.minor"}},
		"a constraint":       {chart: "kubeVersion: '>=1.20-0'\n", template: "x", name: "x", asked: []string{"kubeVersion >=1.20-0"}},
		"all APIs":           {template: `{{ len .Capabilities.APIVersions }}-{{ has "policy/v1" .Capabilities.APIVersions }}`, name: "2-true", asked: []string{"apis", "kubeVersion", "kubeVersion.major", "kubeVersion.minor"}},
		"Helm's version":     {template: `{{ .Capabilities.HelmVersion.Version | trunc 2 }}`, name: "v3"},
	} {
		t.Run(name, func(t *testing.T) {
			s := situation{
				files: strings.Replace(web, "-- Chart.yaml --\n", "-- Chart.yaml --\n"+tt.chart, 1) + "-- templates/a.yaml --\n" + configMap(`"`+strings.ReplaceAll(tt.template, `"`, "`")+`"`),
				caps:  caps, want: []string{"ConfigMap default/" + tt.name},
			}
			result := s.check(t)
			if !slices.Equal(result.Asked, tt.asked) {
				t.Errorf("asked %q, want %q", result.Asked, tt.asked)
			}
			if answers := render.Answers(result.Asked, &render.Request{Capabilities: caps}); len(answers) != len(tt.asked) {
				t.Errorf("answers %q to %q", answers, tt.asked)
			}
		})
	}
}

func TestWhatNeedsTheCluster(t *testing.T) {
	secret := func(value string) string {
		return "apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\nstringData:\n  v: {{ " + value + " | toString | quote }}\n"
	}
	const lookup = `{{ if (lookup "v1" "Secret" "ns" "s") }}x{{ end }}`
	for name, tt := range map[string]struct {
		files   string
		options fleet.BundleDeploymentOptions
		needs   string
		warning string
	}{
		"nothing":                        {files: "-- templates/a.yaml --\n" + secret(`"x"`)},
		"a lookup":                       {files: "-- templates/a.yaml --\n" + secret(`lookup "v1" "Secret" "ns" "s"`), needs: "templates/a.yaml:6 looks up v1 Secret on the cluster"},
		"a lookup that is not made":      {files: "-- templates/a.yaml --\n{{ if .Values.on }}" + lookup + "{{ end }}"},
		"a lookup in an included one":    {files: "-- templates/_h.tpl --\n{{ define \"x\" }}{{ lookup \"v1\" \"Node\" \"\" \"\" }}{{ end }}\n-- templates/a.yaml --\n" + secret(`include "x" .`), needs: "templates/_h.tpl:1 looks up v1 Node"},
		"a lookup that only checks":      {files: "-- templates/check.yaml --\n" + lookup, warning: "templates/check.yaml:1: it looks up v1 Secret on the cluster, only to check something"},
		"a check that changes values":    {files: "-- templates/check.yaml --\n{{ $_ := set .Values \"x\" \"y\" }}" + lookup, needs: "templates/check.yaml:1 looks up v1 Secret"},
		"a check and a lookup":           {files: "-- templates/zcheck.yaml --\n" + lookup + "\n-- templates/a.yaml --\n" + secret(`lookup "v1" "Secret" "ns" "s"`), needs: "templates/a.yaml:6 looks up v1 Secret", warning: "templates/zcheck.yaml:1"},
		"random":                         {files: "-- templates/a.yaml --\n" + secret("randAlphaNum 20"), needs: "templates/a.yaml differs between two renders of the same input: randAlphaNum is random (templates/a.yaml:6)"},
		"random in an included one":      {files: "-- templates/_h.tpl --\n{{ define \"x\" }}\n{{ uuidv4 }}{{ end }}\n-- templates/a.yaml --\n" + secret(`include "x" .`), needs: "templates/a.yaml differs between two renders of the same input: uuidv4 is random (templates/_h.tpl:2)"},
		"random that is not reached":     {files: "-- templates/a.yaml --\n" + secret(`.Values.password | default "x"`) + "{{ if .Values.on }}{{ randAlphaNum 5 }}{{ end }}"},
		"random that a value replaces":   {files: "-- templates/a.yaml --\n" + secret(`.Values.password | default (randAlphaNum 5)`), options: values(map[string]any{"password": "p"})},
		"random in a value":              {files: "-- templates/a.yaml --\n" + secret(`tpl .Values.t .`), options: values(map[string]any{"t": "{{ uuidv4 }}"}), needs: "uuidv4 is random (templates/a.yaml)"},
		"random in a test":               {files: "-- templates/a.yaml --\n" + strings.Replace(secret("randAlphaNum 9"), "metadata:", "metadata:\n  annotations: {helm.sh/hook: test}", 1)},
		"random in a hook":               {files: "-- templates/a.yaml --\n" + strings.Replace(secret("randAlphaNum 9"), "metadata:", "metadata:\n  annotations: {helm.sh/hook: pre-install}", 1), needs: "randAlphaNum is random"},
		"the clock":                      {files: "-- templates/a.yaml --\n" + secret("now | unixEpoch | cat now"), needs: "now reads the clock"},
		"the network":                    {files: "-- templates/a.yaml --\n" + secret(`getHostByName "x.example.com"`), needs: "asks the cluster's network"},
		"the network, which is disabled": {files: "-- templates/a.yaml --\n" + secret(`getHostByName "x.example.com"`), options: fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{DisableDNS: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := situation{files: web + tt.files, options: tt.options}
			result := mustRender(t, render.New(), s.request())
			if (tt.needs == "") != (result.NeedsCluster == "") || !strings.Contains(result.NeedsCluster, tt.needs) {
				t.Errorf("needs the cluster: %q\nwant %q", result.NeedsCluster, tt.needs)
			}
			if warnings := texts(result.Warnings); (tt.warning == "") != (warnings == "") || !strings.Contains(warnings, tt.warning) {
				t.Errorf("warnings %q, want %q", warnings, tt.warning)
			}
		})
	}
}

func TestRemoteSchemasAreNotFetched(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = io.WriteString(w, "{}")
	}))
	t.Cleanup(server.Close)
	for name, tt := range map[string]struct{ schema, place string }{
		"network":            {`{"properties": {"a": {"$ref": "` + server.URL + `/x.json"}}}`, server.URL + "/x.json"},
		"disk":               {`{"properties": {"a": {"$ref": "file:///etc/passwd"}}}`, "file:///etc/passwd"},
		"another file":       {`{"properties": {"a": {"$ref": "other.json"}}}`, "file:///other.json"},
		"draft":              {`{"$schema": "` + server.URL + `/x"}`, server.URL + "/x"},
		"draft on the disk":  {`{"$schema": "file:///dev/stdin"}`, "file:///dev/stdin"},
		"place of its own":   {`{"$id": "` + server.URL + `/", "properties": {"a": {"$ref": "values.schema.json"}}}`, server.URL + "/values.schema.json"},
		"dynamic":            {`{"$schema": "https://json-schema.org/draft/2020-12/schema", "properties": {"a": {"$dynamicRef": "` + server.URL + `/y.json"}}}`, server.URL + "/y.json"},
		"no standard schema": {`{"properties": {"a": {"$ref": "http://json-schema.org/nothing"}}}`, "http://json-schema.org/nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			s := situation{files: web + "-- values.schema.json --\n" + tt.schema + "\n", options: values(map[string]any{"a": "x"})}
			result := s.check(t)
			if len(result.Warnings) != 1 || !strings.Contains(texts(result.Warnings), "refers to "+tt.place+", which is not fetched") {
				t.Errorf("got %v", result.Warnings)
			}
		})
	}
	if asked.Load() != 0 {
		t.Errorf("the server was asked %d times", asked.Load())
	}
}

func TestSchemasThatReferToThemselvesAndToStandards(t *testing.T) {
	for name, schema := range map[string]string{
		"itself":   `{"definitions": {"b": {"type": "integer"}}, "properties": {"a": {"$ref": "#/definitions/b"}}}`,
		"its name": `{"definitions": {"b": {"type": "integer"}}, "properties": {"a": {"$ref": "values.schema.json#/definitions/b"}}}`,
		"draft 7":  `{"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"a": {"type": "integer"}}}`,
		"2020-12":  `{"$schema": "https://json-schema.org/draft/2020-12/schema", "properties": {"a": {"type": "integer"}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := situation{files: web + "-- values.schema.json --\n" + schema + "\n", options: values(map[string]any{"a": "x"}), err: "at '/a': got string, want integer"}
			s.check(t)
		})
	}
}
