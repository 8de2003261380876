package apply

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

func TestJudge(t *testing.T) {
	const bundle = "fleet-default/web"
	for name, test := range map[string]struct {
		labels, annotations map[string]string
		takeOwnership       bool
		want                verdict
		says                string
	}{
		"ours":                           {annotations: map[string]string{fleet.BundleAnnotation: bundle}, want: ours},
		"another bundle's":               {annotations: map[string]string{fleet.BundleAnnotation: "fleet-default/api"}, want: refuse, says: "belongs to bundle fleet-default/api"},
		"another bundle's, taking over":  {annotations: map[string]string{fleet.BundleAnnotation: "fleet-default/api"}, takeOwnership: true, want: refuse},
		"Flux Kustomization":             {labels: map[string]string{"kustomize.toolkit.fluxcd.io/name": "a", "kustomize.toolkit.fluxcd.io/namespace": "b"}, takeOwnership: true, want: refuse, says: "Flux Kustomization b/a"},
		"Flux HelmRelease":               {labels: map[string]string{"helm.toolkit.fluxcd.io/name": "a", "helm.toolkit.fluxcd.io/namespace": "b"}, want: refuse, says: "Flux HelmRelease b/a"},
		"Argo CD":                        {annotations: map[string]string{"argocd.argoproj.io/tracking-id": "x"}, want: refuse, says: "Argo CD"},
		"nobody's":                       {want: refuse, says: "helm.takeOwnership"},
		"an instance label is no owner":  {labels: map[string]string{"app.kubernetes.io/instance": "x"}, takeOwnership: true, want: adopt},
		"Helm's, taking over":            {labels: map[string]string{"app.kubernetes.io/managed-by": "Helm"}, takeOwnership: true, want: adopt},
		"held":                           {annotations: map[string]string{HeldAnnotation: "fleet-default/api"}, want: adopt},
		"a namespace made for a bundle":  {annotations: map[string]string{CreatedAnnotation: "fleet-default/api"}, want: adopt},
		"held, and then taken by a tool": {annotations: map[string]string{HeldAnnotation: bundle, "argocd.argoproj.io/tracking-id": "x"}, want: refuse},
	} {
		t.Run(name, func(t *testing.T) {
			live := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Labels: test.labels, Annotations: test.annotations}}
			got, why := judge(live, bundle, test.takeOwnership)
			if got != test.want || !strings.Contains(why, test.says) {
				t.Errorf("got %d %q, want %d saying %q", got, why, test.want, test.says)
			}
		})
	}
}
