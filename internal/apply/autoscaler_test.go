package apply

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestScaledBy(t *testing.T) {
	entry := func(manager, subresource, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource, FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)}}
	}
	replicas := `{"f:spec":{"f:replicas":{}}}`
	for name, test := range map[string]struct {
		entries []metav1.ManagedFieldsEntry
		want    string
	}{
		"a person":                        {[]metav1.ManagedFieldsEntry{entry("kubectl", "scale", replicas)}, "kubectl"},
		"an autoscaler beside a person":   {[]metav1.ManagedFieldsEntry{entry("kubectl", "scale", replicas), entry("keda-operator", "scale", replicas), entry("x", "scale", replicas)}, "keda-operator"},
		"not through scale":               {[]metav1.ManagedFieldsEntry{entry("kubectl", "", replicas)}, ""},
		"through scale, and other fields": {[]metav1.ManagedFieldsEntry{entry("x", "scale", `{"f:metadata":{"f:labels":{"f:a":{}}}}`)}, ""},
		"nobody":                          {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ScaledBy(test.entries); got != test.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestScales(t *testing.T) {
	ref := Ref{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "a", Name: "x"}
	for target, want := range map[string]bool{
		"{apiVersion: apps/v1, kind: Deployment, name: x}":      true,
		"{apiVersion: apps/v1beta1, kind: Deployment, name: x}": true,
		"{kind: Deployment, name: x}":                           true,
		"{apiVersion: apps/v1, kind: Deployment, name: y}":      false,
		"{apiVersion: apps/v1, kind: StatefulSet, name: x}":     false,
		"{apiVersion: e.org/v1, kind: Deployment, name: x}":     false,
	} {
		if got := scales(itemOf(t, "{spec: {scaleTargetRef: "+target+"}}").obj, ref); got != want {
			t.Errorf("%s: %v", target, got)
		}
	}
}
