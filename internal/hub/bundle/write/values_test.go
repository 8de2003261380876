package write

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/flotilla-sh/flotilla/internal/names"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

func helm(values map[string]any) *fleet.HelmOptions {
	return &fleet.HelmOptions{Chart: "c", Values: &fleet.GenericMap{Data: values}}
}

func bundleOf(own *fleet.HelmOptions, targets ...*fleet.HelmOptions) *fleet.Bundle {
	b := &fleet.Bundle{}
	b.Namespace, b.Name = "fleet-default", "app"
	b.Spec.Helm = own
	for _, t := range targets {
		b.Spec.Targets = append(b.Spec.Targets, fleet.BundleTarget{BundleDeploymentOptions: fleet.BundleDeploymentOptions{Helm: t}})
	}
	return b
}

// put gives values back as the deploy controller does: by the key of the
// bundle, -1, and of each target.
func put(t *testing.T, helm *fleet.HelmOptions, raw []byte) {
	t.Helper()
	if len(raw) == 0 {
		return
	}
	helm.Values = &fleet.GenericMap{}
	if err := json.Unmarshal(raw, helm.Values); err != nil {
		t.Fatal(err)
	}
}

func TestValuesComeBack(t *testing.T) {
	deep := map[string]any{"password": "s3cret", "list": []any{"a", 1.5, true, nil}, "nested": map[string]any{"k": "${ .ClusterName }"}}
	for name, tt := range map[string]struct {
		bundle *fleet.Bundle
		keys   int
	}{
		"bundle":             {bundleOf(helm(deep)), 1},
		"a target":           {bundleOf(nil, nil, helm(deep)), 1},
		"bundle and targets": {bundleOf(helm(deep), helm(map[string]any{"a": "1"}), nil, helm(map[string]any{"b": "2"})), 3},
	} {
		t.Run(name, func(t *testing.T) {
			before := tt.bundle.DeepCopy()
			secret, err := takeValues(tt.bundle)
			if err != nil {
				t.Fatal(err)
			}
			if secret.Name != names.ValuesSecret("app", tt.bundle.Spec.ValuesHash) || secret.Namespace != "fleet-default" || !ptr.Deref(secret.Immutable, false) {
				t.Errorf("the Secret is %s/%s, immutable %v", secret.Namespace, secret.Name, secret.Immutable)
			}
			if len(secret.Data) != tt.keys {
				t.Errorf("%d keys, want %d", len(secret.Data), tt.keys)
			}
			check := func(helm *fleet.HelmOptions, key string) {
				if helm == nil {
					return
				}
				if helm.Values != nil {
					t.Errorf("%s: values are left in the bundle", key)
				}
				put(t, helm, secret.Data[key])
			}
			check(tt.bundle.Spec.Helm, names.ValuesKey(-1))
			for i := range tt.bundle.Spec.Targets {
				check(tt.bundle.Spec.Targets[i].Helm, names.ValuesKey(i))
			}
			tt.bundle.Spec.ValuesHash = ""
			if diff := cmp.Diff(before, tt.bundle); diff != "" {
				t.Errorf("(-before +after):\n%s", diff)
			}
		})
	}
}

func TestNothingToTake(t *testing.T) {
	for name, b := range map[string]*fleet.Bundle{
		"no helm":      bundleOf(nil, nil),
		"no values":    bundleOf(&fleet.HelmOptions{}, &fleet.HelmOptions{}),
		"empty values": bundleOf(helm(nil), helm(map[string]any{})),
	} {
		t.Run(name, func(t *testing.T) {
			b.Spec.ValuesHash = "old"
			secret, err := takeValues(b)
			if secret != nil || err != nil || b.Spec.ValuesHash != "" {
				t.Errorf("got %v %v, hash %q; want no Secret and no hash", secret, err, b.Spec.ValuesHash)
			}
		})
	}
}

func TestSecretIsNamedByItsValues(t *testing.T) {
	hash := func(b *fleet.Bundle) string {
		if _, err := takeValues(b); err != nil {
			t.Fatal(err)
		}
		return b.Spec.ValuesHash
	}
	one := hash(bundleOf(helm(map[string]any{"a": "1", "b": "2"})))
	if again := hash(bundleOf(helm(map[string]any{"b": "2", "a": "1"}))); again != one {
		t.Error("equal values have one Secret")
	}
	if other := hash(bundleOf(helm(map[string]any{"a": "1", "b": "3"}))); other == one {
		t.Error("other values need another Secret: it is immutable")
	}
	if moved := hash(bundleOf(nil, helm(map[string]any{"a": "1", "b": "2"}))); moved == one {
		t.Error("the values of a target are not those of the bundle")
	}
}
