package helm

import (
	"context"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"

	"github.com/flotilla-sh/flotilla/internal/render/manifest"
	"github.com/flotilla-sh/flotilla/internal/source"
)

// anyCluster has every API and the version that Helm knows.
type anyCluster struct{}

func (anyCluster) KubeVersion() string   { return "v1.36.3" }
func (anyCluster) KubeMajor() string     { return "1" }
func (anyCluster) KubeMinor() string     { return "36" }
func (anyCluster) Satisfies(string) bool { return true }
func (anyCluster) Has(string) bool       { return true }
func (anyCluster) All() []string         { return nil }

func chartFiles(templates map[string]string) []source.File {
	files := []source.File{{Path: "Chart.yaml", Data: []byte("apiVersion: v2\nname: web\nversion: 1.0.0\n")}}
	for name, text := range templates {
		files = append(files, source.File{Path: "templates/" + name, Data: []byte(text)})
	}
	return files
}

// TestRenderLeavesTheChartAlone renders one loaded chart with several values:
// Helm itself, and templates with set, change what they are given.
func TestRenderLeavesTheChartAlone(t *testing.T) {
	r := New(1<<20, manifest.NewReader(1<<20))
	files := chartFiles(map[string]string{"a.yaml": `{{ .Values.a | default "none" }}{{ $_ := set .Values "a" "changed" }}{{ $_ := set .Values.deep "b" "changed" }}{{ .Values.deep.b }}`})
	files = append(files, source.File{Path: "values.yaml", Data: []byte("deep: {b: chart}\n")})
	mine := map[string]any{"a": "mine", "deep": map[string]any{"b": "mine"}}
	for _, tt := range []struct {
		values map[string]any
		want   string
	}{{mine, "minechanged"}, {mine, "minechanged"}, {nil, "nonechanged"}, {nil, "nonechanged"}} {
		out, err := r.Render(context.Background(), Input{Files: files, Digest: "d", Values: tt.values, Capabilities: anyCluster{}})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(out.Files[0].Text); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
	if mine["deep"].(map[string]any)["b"] != "mine" {
		t.Errorf("the caller's values were changed: %v", mine)
	}
}

func TestCallGraph(t *testing.T) {
	for name, tt := range map[string]struct {
		templates map[string]string
		want      []string // functions that a.yaml reaches
		tpl       bool
	}{
		"none":                {templates: map[string]string{"a.yaml": `{{ .Values.now }} now`}},
		"its own":             {templates: map[string]string{"a.yaml": `{{ if true }}{{ else }}{{ with now }}{{ end }}{{ end }}`}, want: []string{"now"}},
		"as an argument":      {templates: map[string]string{"a.yaml": `{{ quote (printf "%s" (randAlpha 3)) }}`}, want: []string{"randAlpha"}},
		"in a variable":       {templates: map[string]string{"a.yaml": `{{ $x := uuidv4 | quote }}`}, want: []string{"uuidv4"}},
		"included":            {templates: map[string]string{"a.yaml": `{{ include "x" . }}`, "_x.tpl": `{{ define "x" }}{{ template "y" }}{{ end }}{{ define "y" }}{{ genCA "a" 1 }}{{ end }}`}, want: []string{"genCA"}},
		"not included":        {templates: map[string]string{"a.yaml": `{{ include "x" . }}`, "_x.tpl": `{{ define "x" }}{{ end }}{{ define "y" }}{{ now }}{{ end }}`}},
		"included by a name":  {templates: map[string]string{"a.yaml": `{{ include (printf "x") . }}`, "_x.tpl": `{{ define "x" }}{{ now }}{{ end }}`}, want: []string{"now"}},
		"in a circle":         {templates: map[string]string{"a.yaml": `{{ include "x" . }}`, "_x.tpl": `{{ define "x" }}{{ include "x" . }}{{ now }}{{ end }}`}, want: []string{"now"}},
		"texts as templates":  {templates: map[string]string{"a.yaml": `{{ tpl "{{ now }}" . }}`}, tpl: true},
		"what does not parse": {templates: map[string]string{"a.yaml": `{{ nope`}},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := loader.LoadFiles(buffered(chartFiles(tt.templates)))
			if err != nil {
				t.Fatal(err)
			}
			calls, tpl := newCallGraph(c).reach("web/templates/a.yaml")
			var got []string
			for _, call := range calls {
				got = append(got, call.function)
			}
			if !slices.Equal(got, tt.want) || tpl != tt.tpl {
				t.Errorf("got %v and tpl %v, want %v and %v", got, tpl, tt.want, tt.tpl)
			}
		})
	}
}

func TestArchiveThatIsNone(t *testing.T) {
	if _, err := LoadArchive("web.tgz", []byte("x")); err == nil || !strings.Contains(err.Error(), "web.tgz cannot be unpacked as a chart") {
		t.Errorf("got %v", err)
	}
}
