package content

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"

	"github.com/flotilla-sh/flotilla/internal/source"
)

func TestWhatMayHoldSecrets(t *testing.T) {
	for name, tt := range map[string]struct {
		path, text string
		secret     bool
	}{
		"a manifest":                  {"a.yaml", "apiVersion: v1\nkind: ConfigMap\n", false},
		"a Secret":                    {"a.yaml", "apiVersion: v1\nkind: Secret\n", true},
		"a quoted Secret":             {"a.yml", "\"kind\": \"Secret\" # x\n", true},
		"a Secret among others":       {"a.yaml", "kind: ConfigMap\n---\nkind: Secret\n", true},
		"an ExternalSecret":           {"a.yaml", "apiVersion: external-secrets.io/v1\nkind: ExternalSecret\n", true},
		"a template":                  {"templates/a.yaml", "{{ if .x }}\napiVersion: v1\nkind: Service\n{{ end }}", false},
		"a template of a Secret":      {"templates/a.yaml", "{{ if .x }}\n  kind: Secret\n{{ end }}", true},
		"a template of an open kind":  {"templates/a.yaml", "kind: {{ .Values.kind }}\n", true},
		"parts of templates":          {"templates/_helpers.tpl", "{{ define \"p\" }}hunter2{{ end }}", true},
		"the name of a chart":         {"charts/x/Chart.yaml", "name: x", false},
		"values":                      {"values.yaml", "password: hunter2", true},
		"values for a test":           {"ci/prod.yaml", "kinds: hunter2", true},
		"what a template may include": {"files/key.pem", "hunter2", true},
		"JSON":                        {"a.json", "{\"kind\": \"ConfigMap\"}", true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := mayHoldSecret(source.File{Path: tt.path, Data: []byte(tt.text)}); got != tt.secret {
				t.Errorf("may hold a secret: %v", got)
			}
		})
	}
}

func TestSourceComesBackWholeAndKeepsSecretsApart(t *testing.T) {
	type request struct{ Values map[string]string }
	files := []source.File{
		{Path: "Chart.yaml", Data: []byte("name: x\n")},
		{Path: "templates/a.yaml", Data: []byte("kind: ConfigMap\n")},
		{Path: "templates/big.yaml", Data: append([]byte("kind: ConfigMap\n"), bytes.Repeat([]byte("#0123456789\n"), 100_000)...)},
		{Path: "templates/s.yaml", Data: []byte("kind: Secret\nx: hunter2\n")},
		{Path: "values.yaml", Data: []byte("password: hunter2\n")},
	}
	shared, err := EncodeSharedFiles(key, files)
	if err != nil {
		t.Fatal(err)
	}
	want := request{map[string]string{"a": "hunter2"}}
	enc, err := EncodeSource(key, shared, want)
	if err != nil {
		t.Fatal(err)
	}
	var got request
	back, _, err := FetchSource(t.Context(), shelf{}.put(enc), memory{}, enc.Root.Ref, &got)
	if err != nil || !reflect.DeepEqual(back, files) || !reflect.DeepEqual(got, want) {
		t.Errorf("%d files of %d, request %v: %v", len(back), len(files), got, err)
	}
	for _, b := range append(enc.Chunks, enc.Root) {
		p, err := decode(b.Ref, b.Data)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range p.Files {
			if !b.Secret && bytes.Contains([]byte(f.Text), []byte("hunter2")) {
				t.Errorf("%s is stored in the open", f.Path)
			}
		}
		if !b.Secret && p.Request != nil {
			t.Error("the values are stored in the open")
		}
	}
	if _, _, err := FetchObjects(t.Context(), shelf{}.put(enc), memory{}, enc.Root.Ref); err == nil {
		t.Error("a source is taken for an empty manifest")
	}
}

func TestSourceThatChangesLittleIsFetchedInPart(t *testing.T) {
	var files []source.File
	for i := range 40 {
		text := fmt.Sprintf("kind: ConfigMap\n#%d\n%s", i, bytes.Repeat([]byte(fmt.Sprint("#", i*7919, "\n")), 3000))
		files = append(files, source.File{Path: fmt.Sprintf("templates/%02d.yaml", i), Data: []byte(text)})
	}
	encode := func(request string) Encoded {
		shared, err := EncodeSharedFiles(key, files)
		if err != nil {
			t.Fatal(err)
		}
		enc, err := EncodeSource(key, shared, request)
		if err != nil {
			t.Fatal(err)
		}
		return enc
	}
	kept, request := memory{}, ""
	first := encode("one")
	if _, _, err := FetchSource(t.Context(), shelf{}.put(first), kept, first.Root.Ref, &request); err != nil {
		t.Fatal(err)
	}
	files[17].Data = append(files[17].Data, "# more\n"...)
	second := encode("two")
	back, took, err := FetchSource(t.Context(), shelf{}.put(second), kept, second.Root.Ref, &request)
	if err != nil || !reflect.DeepEqual(back, files) || request != "two" {
		t.Fatalf("%d files, request %q: %v", len(back), request, err)
	}
	// The root, the request and the chunk with the file are new.
	if took.Payloads > 3 || took.Reused != len(second.Chunks)+1-took.Payloads {
		t.Errorf("of %d chunks %d payloads were fetched and %d kept", len(second.Chunks), took.Payloads, took.Reused)
	}
}
