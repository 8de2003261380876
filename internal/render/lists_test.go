package render

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/flotilla-sh/flotilla/internal/source"
)

// TestRepeatedKeysAreThoseOfTheAPIServer puts a key twice into each list, and
// asks the schemas of the API server as well.
func TestRepeatedKeysAreThoseOfTheAPIServer(t *testing.T) {
	converter := applyconfigurations.NewTypeConverter(scheme.Scheme)
	check := func(t *testing.T, id, path string, l keyed, container string) {
		t.Helper()
		item := func(n int) map[string]any {
			out := map[string]any{}
			for _, k := range l.keys {
				switch {
				case k.otherwise != "":
				case strings.HasSuffix(k.name, "ort"):
					out[k.name] = int64(80 + n)
				default:
					out[k.name] = fmt.Sprint("x", n)
				}
			}
			return out
		}
		for _, twice := range []bool{false, true} {
			second := item(2)
			if twice {
				second = item(1)
			}
			i := strings.LastIndex(id, "/")
			object := map[string]any{"apiVersion": id[:i], "kind": id[i+1:], "metadata": map[string]any{"name": "x"}}
			into := object
			if container != "" {
				inner := map[string]any{"name": "c"}
				put(object, path+"."+container, []any{inner})
				into = inner
			} else if path != "" {
				inner := map[string]any{}
				put(object, path, inner)
				into = inner
			}
			put(into, l.list, []any{item(1), second})
			_, server := converter.ObjectToTyped(&unstructured.Unstructured{Object: object})
			ours := repeatedKey(id[:i], id[i+1:], object)
			if (server != nil) != twice || (ours != nil) != twice {
				t.Errorf("%s %s.%s, twice %t: the schema says %v, we say %v", id, path, l.list, twice, server, ours)
			}
		}
	}
	for id, lists := range objectLists {
		for _, l := range lists {
			check(t, id, "", l, "")
		}
	}
	for id, path := range podSpecs {
		for _, l := range podLists {
			check(t, id, path, l, "")
		}
		for _, l := range containerLists {
			check(t, id, path, l, "containers")
			check(t, id, path, l, "initContainers")
		}
	}
}

func put(object map[string]any, path string, value any) {
	_ = unstructured.SetNestedField(object, nil, strings.Split(path, ".")...)
	names := strings.Split(path, ".")
	for _, name := range names[:len(names)-1] {
		object = object[name].(map[string]any)
	}
	object[names[len(names)-1]] = value
}

func TestRepeatedKeyIsNamed(t *testing.T) {
	container := map[string]any{"name": "c", "env": []any{
		map[string]any{"name": "A", "value": "secret"}, map[string]any{"name": "B"}, map[string]any{"name": "A"},
	}}
	object := map[string]any{}
	put(object, "spec.template.spec", map[string]any{"containers": []any{container}})
	err := repeatedKey("apps/v1", "Deployment", object)
	want := "spec.template.spec.containers[0].env has the key name=A twice, in items 0 and 2"
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
	// What only a default tells apart.
	ports := func(second map[string]any) map[string]any {
		return map[string]any{"spec": map[string]any{"ports": []any{map[string]any{"port": int64(53), "protocol": "TCP"}, second}}}
	}
	if err := repeatedKey("v1", "Service", ports(map[string]any{"port": int64(53)})); err == nil {
		t.Error("a port without protocol is TCP")
	}
	if err := repeatedKey("v1", "Service", ports(map[string]any{"port": int64(53), "protocol": "UDP"})); err != nil {
		t.Error(err)
	}
}

func TestRepeatedKeyIsAnErrorOfItsFile(t *testing.T) {
	files := []source.File{
		{Path: "Chart.yaml", Data: []byte("apiVersion: v2\nname: web\nversion: 1.0.0\n")},
		{Path: "templates/dns.yaml", Data: []byte("apiVersion: v1\nkind: Service\nmetadata: {name: dns}\nspec: {ports: [{port: 53, name: a}, {port: 53, name: b}]}\n")},
	}
	_, err := New().Render(t.Context(), Request{Files: files, Bundle: "web", Capabilities: Capabilities{KubeVersion: "v1.36.3"}})
	if err == nil {
		t.Fatal("a port that is there twice is no error")
	}
	for _, want := range []string{"templates/dns.yaml", "Service dns", "spec.ports has the key port=53,protocol=TCP twice"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}
