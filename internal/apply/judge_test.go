package apply

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

func TestJudge(t *testing.T) {
	const bundle, hub = "fleet-default/web", "h1"
	for name, test := range map[string]struct {
		labels, annotations map[string]string
		takeOwnership       bool
		abandoned           bool
		want                verdict
		says                string
	}{
		"ours":                             {annotations: map[string]string{fleet.BundleAnnotation: bundle, fleet.HubAnnotation: hub}, want: ours},
		"ours, from before hubs had ids":   {annotations: map[string]string{fleet.BundleAnnotation: bundle}, want: ours},
		"the same bundle of another hub":   {annotations: map[string]string{fleet.BundleAnnotation: bundle, fleet.HubAnnotation: "h2"}, takeOwnership: true, want: refuse, says: "belongs to bundle fleet-default/web of another hub (h2)"},
		"another bundle of another hub":    {annotations: map[string]string{fleet.BundleAnnotation: "a/b", fleet.HubAnnotation: "h2"}, want: refuse, says: "of another hub (h2)"},
		"another bundle's":                 {annotations: map[string]string{fleet.BundleAnnotation: "fleet-default/api"}, want: refuse, says: "belongs to bundle fleet-default/api"},
		"another bundle's, taking over":    {annotations: map[string]string{fleet.BundleAnnotation: "fleet-default/api"}, takeOwnership: true, want: refuse},
		"another bundle gave it up":        {annotations: map[string]string{fleet.BundleAnnotation: "fleet-default/api", fleet.HubAnnotation: hub}, abandoned: true, want: adopt},
		"given up, and then taken by Flux": {annotations: map[string]string{fleet.BundleAnnotation: "fleet-default/api"}, labels: map[string]string{"kustomize.toolkit.fluxcd.io/name": "a"}, abandoned: true, want: refuse, says: "Flux"},
		"Flux Kustomization":               {labels: map[string]string{"kustomize.toolkit.fluxcd.io/name": "a", "kustomize.toolkit.fluxcd.io/namespace": "b"}, takeOwnership: true, want: refuse, says: "Flux Kustomization b/a"},
		"Flux HelmRelease":                 {labels: map[string]string{"helm.toolkit.fluxcd.io/name": "a", "helm.toolkit.fluxcd.io/namespace": "b"}, want: refuse, says: "Flux HelmRelease b/a"},
		"Argo CD":                          {annotations: map[string]string{"argocd.argoproj.io/tracking-id": "x"}, takeOwnership: true, want: refuse, says: "Argo CD"},
		"nobody's":                         {want: refuse, says: "helm.takeOwnership"},
		"Helm's":                           {annotations: map[string]string{"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "shop"}, want: refuse, says: "Helm release shop/web"},
		"Rancher Fleet's":                  {annotations: map[string]string{"objectset.rio.cattle.io/id": "default-web", "meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "shop"}, want: refuse, says: "Rancher Fleet installed it for shop/web"},
		"kubectl's":                        {annotations: map[string]string{lastAppliedAnnotation: "{}"}, want: refuse, says: "kubectl apply made it"},
		"an instance label is no owner":    {labels: map[string]string{"app.kubernetes.io/instance": "x"}, takeOwnership: true, want: adopt},
		"Helm's, taking over":              {labels: map[string]string{"app.kubernetes.io/managed-by": "Helm"}, takeOwnership: true, want: adopt},
		"held":                             {annotations: map[string]string{HeldAnnotation: "fleet-default/api"}, want: adopt},
		"a namespace made for a bundle":    {annotations: map[string]string{CreatedAnnotation: "fleet-default/api"}, want: adopt},
		"held, and then taken by a tool":   {annotations: map[string]string{HeldAnnotation: bundle, "argocd.argoproj.io/tracking-id": "x"}, want: refuse},
	} {
		t.Run(name, func(t *testing.T) {
			live := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Labels: test.labels, Annotations: test.annotations}}
			got, why := judge(live, claim{Owner: Owner{Bundle: bundle, Hub: hub}, takeOwnership: test.takeOwnership, abandoned: test.abandoned})
			if got != test.want || !strings.Contains(why, test.says) {
				t.Errorf("got %d %q, want %d saying %q", got, why, test.want, test.says)
			}
		})
	}
}
