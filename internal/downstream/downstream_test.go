package downstream_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/flotilla-sh/flotilla/internal/downstream"
	"github.com/flotilla-sh/flotilla/internal/fault"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

func TestSources(t *testing.T) {
	spec := &fleet.BundleSpec{Targets: []fleet.BundleTarget{{}, {}}}
	spec.DownstreamResources = []fleet.DownstreamResource{{Kind: "secret", Name: "b"}, {Kind: "ConfigMap", Name: "z"}}
	spec.Targets[1].DownstreamResources = []fleet.DownstreamResource{{Kind: "Secret", Name: "b"}, {Kind: "Secret", Name: "a"}}
	want := []downstream.Source{{Kind: "ConfigMap", Name: "z"}, {Kind: "Secret", Name: "a"}, {Kind: "Secret", Name: "b"}}
	got, err := downstream.OfBundle(spec)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestSourcesAreNotTooMany(t *testing.T) {
	spec := &fleet.BundleSpec{Targets: []fleet.BundleTarget{{}, {}}}
	name := func(of *fleet.BundleDeploymentOptions, from, to int) {
		for i := range to - from {
			of.DownstreamResources = append(of.DownstreamResources, fleet.DownstreamResource{Kind: "Secret", Name: fmt.Sprint("s", from+i)})
		}
	}
	// The same ones count once.
	name(&spec.Targets[0].BundleDeploymentOptions, 0, 80)
	name(&spec.Targets[1].BundleDeploymentOptions, 20, 100)
	if got, err := downstream.OfBundle(spec); err != nil || len(got) != 100 {
		t.Errorf("%d objects, %v; want 100", len(got), err)
	}
	name(&spec.BundleDeploymentOptions, 100, 101)
	got, err := downstream.OfBundle(spec)
	if err == nil || got != nil || fault.KindOf(err) != fault.Stalled || !strings.Contains(err.Error(), "name 101 objects, and may name 100") {
		t.Errorf("%d objects, %v; want a stalled error", len(got), err)
	}
}

func TestCopies(t *testing.T) {
	meta := metav1.ObjectMeta{
		Namespace: "fleet-default", Name: "x", UID: "1", ResourceVersion: "7", Finalizers: []string{"a/b"},
		Labels: map[string]string{"grafana_dashboard": "1", "app.kubernetes.io/managed-by": "Helm", "objectset.rio.cattle.io/hash": "h"},
		Annotations: map[string]string{
			"note": "n", "kubectl.kubernetes.io/last-applied-configuration": "{}", "meta.helm.sh/release-name": "r", "helm.sh/hook": "pre-install", "flotilla.sh/bundle": "a/b",
		},
	}
	source := downstream.Source{Kind: "Secret", Name: "x"}
	options := &fleet.BundleDeploymentOptions{DownstreamResources: []fleet.DownstreamResource{{Kind: "Secret", Name: "x"}}}
	for name, test := range map[string]struct {
		copied downstream.Copy
		target string
		want   string
		says   string
		kind   fault.Kind
	}{
		"a Secret": {
			copied: downstream.OfSecret(&corev1.Secret{ObjectMeta: meta, Immutable: ptr.To(true), Type: "Opaque", Data: map[string][]byte{"k": []byte("v")}}), target: "shop",
			want: `{"apiVersion":"v1","data":{"k":"dg=="},"kind":"Secret","metadata":{"annotations":{"flotilla.sh/copied-from":"fleet-default/x","note":"n"},"labels":{"grafana_dashboard":"1"},"name":"x","namespace":"shop"},"type":"Opaque"}`,
		},
		"a ConfigMap": {
			copied: downstream.OfConfigMap(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x"}, Data: map[string]string{"k": "<v>"}}),
			want:   `{"apiVersion":"v1","data":{"k":"<v>"},"kind":"ConfigMap","metadata":{"annotations":{"flotilla.sh/copied-from":"ns/x"},"name":"x","namespace":"default"}}`,
		},
		"missing":     {copied: downstream.Missing(source, "ns"), says: "there is no Secret ns/x on the hub", kind: fault.Waiting},
		"other kinds": {copied: downstream.Invalid(downstream.Source{Kind: "Pod", Name: "x"}), says: `the kind "Pod"`, kind: fault.Stalled},
		"a token":     {copied: downstream.OfSecret(&corev1.Secret{ObjectMeta: meta, Type: corev1.SecretTypeServiceAccountToken}), says: "means nothing on another cluster", kind: fault.Stalled},
		"the hub's":   {copied: downstream.OfSecret(&corev1.Secret{ObjectMeta: meta, Type: "fleet.cattle.io/bundle-values/v1alpha1"}), says: "the hub's own", kind: fault.Stalled},
	} {
		t.Run(name, func(t *testing.T) {
			o := *options
			o.TargetNamespace = test.target
			got, err := downstream.All(&o, map[downstream.Source]downstream.Copy{source: test.copied})
			if test.says != "" {
				if err == nil || !strings.Contains(err.Error(), test.says) || fault.KindOf(err) != test.kind {
					t.Errorf("got %v, want %q", err, test.says)
				}
				return
			}
			if err != nil || len(got) != 1 {
				t.Fatalf("got %v, %v", got, err)
			}
			if diff := cmp.Diff(test.want, string(got[0].JSON)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
