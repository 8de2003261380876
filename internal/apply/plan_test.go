package apply

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"

	"github.com/flotilla-sh/flotilla/internal/memapi"
)

// TestSecretItems: whatever may hold a secret value is marked, so that no
// refusal repeats it; hooks as well.
func TestSecretItems(t *testing.T) {
	found, err := discovery.NewDiscoveryClientForConfig(memapi.New(nil).Config())
	if err != nil {
		t.Fatal(err)
	}
	engine := NewEngine(&Client{Kinds: NewKinds(found, clock.RealClock{})})
	object := func(kind string, annotations map[string]string) *unstructured.Unstructured {
		obj := &unstructured.Unstructured{}
		obj.SetAPIVersion("v1")
		obj.SetKind(kind)
		obj.SetName("a")
		obj.SetAnnotations(annotations)
		return obj
	}
	hook := map[string]string{"helm.sh/hook": "pre-install"}
	for name, test := range map[string]struct {
		kind   string
		secret bool
		want   bool
	}{
		"plain":                       {kind: "ConfigMap"},
		"a Secret":                    {kind: "Secret", want: true},
		"rendered with secret values": {kind: "ConfigMap", secret: true, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := engine.Plan(t.Context(), Deployment{
				Options: Options{Secret: test.secret},
				Objects: []*unstructured.Unstructured{object(test.kind, nil), object(test.kind, hook)},
			})
			if err != nil || len(p.items) != 1 || len(p.hooks) != 1 {
				t.Fatalf("%+v, %v", p, err)
			}
			if p.items[0].secret != test.want || p.hooks[0].secret != test.want {
				t.Errorf("object %v, hook %v, want %v", p.items[0].secret, p.hooks[0].secret, test.want)
			}
		})
	}
}
