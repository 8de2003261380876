package agent_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/content"
	"github.com/flotilla-sh/flotilla/internal/digest"
	"github.com/flotilla-sh/flotilla/internal/render"
	"github.com/flotilla-sh/flotilla/internal/render/rendertest"
	"github.com/flotilla-sh/flotilla/internal/templating"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// deploySource writes what the hub writes for a bundle that the cluster renders.
func (w *world) deploySource(bundle, files string, options fleet.BundleDeploymentOptions, copies ...render.Object) {
	w.t.Helper()
	w.deployRequest(render.Request{Files: rendertest.Files(files), Bundle: bundle, Options: options, Copies: copies})
}

func (w *world) deployRequest(req render.Request, change ...func(*fleet.BundleDeployment)) {
	w.t.Helper()
	key, options := content.Key("test"), req.Options
	shared, err := content.EncodeSharedFiles(key, req.Files)
	if err != nil {
		w.t.Fatal(err)
	}
	enc, err := content.EncodeSource(key, shared, render.ForCluster(req))
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.store.Put(w.ctx, enc, w.namespace); err != nil {
		w.t.Fatal(err)
	}
	sum, err := digest.OfJSON(options)
	if err != nil {
		w.t.Fatal(err)
	}
	w.deploy(req.Bundle, nil, func(bd *fleet.BundleDeployment) {
		bd.Spec.Options = fleet.BundleDeploymentOptions{DefaultNamespace: options.DefaultNamespace, DownstreamResources: options.DownstreamResources}
		if options.Helm != nil {
			bd.Spec.Options.Helm = &fleet.HelmOptions{ValuesFrom: options.Helm.ValuesFrom}
		}
		bd.Spec.Content = &fleet.ContentRef{Digest: enc.Root.Digest, Name: enc.Root.Name, Source: true}
		bd.Spec.DeploymentID = "s-" + enc.Root.Digest[:61] + ":" + sum
		for _, c := range change {
			c(bd)
		}
	})
}

const chart = "-- Chart.yaml --\napiVersion: v2\nname: web\nversion: 1.2.3\n-- values.yaml --\ncolour: red\nsize: small\n"

func (w *world) data(namespace, name, key string) string {
	w.t.Helper()
	cm := &corev1.ConfigMap{}
	if err := server.client.Get(w.ctx, client.ObjectKey{Namespace: namespace, Name: name}, cm); err != nil {
		return err.Error()
	}
	return cm.Data[key]
}

func TestValuesOfTheCluster(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shop}})
	files := chart + "-- templates/cm.yaml --\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\ndata: {all: \"{{ .Values.colour }} {{ .Values.size }} {{ .Values.tax }}\"}\n"
	w.deploySource("web", files, fleet.BundleDeploymentOptions{DefaultNamespace: shop, Helm: &fleet.HelmOptions{
		Values: &fleet.GenericMap{Data: map[string]any{"size": "large", "tax": "low"}},
		ValuesFrom: []fleet.ValuesFrom{
			{
				SecretKeyRef:    &fleet.SecretKeySelector{LocalObjectReference: fleet.LocalObjectReference{Name: "s"}, Key: "v"},
				ConfigMapKeyRef: &fleet.ConfigMapKeySelector{LocalObjectReference: fleet.LocalObjectReference{Name: "c"}},
			},
		},
	}})
	w.start()
	bd := w.until("web", func(bd *fleet.BundleDeployment) error {
		if !strings.Contains(deployedMessage(bd), "key values.yaml of the ConfigMap "+shop+"/c on this cluster: there is no such ConfigMap") {
			return fmt.Errorf("message: %s", deployedMessage(bd))
		}
		return nil
	})
	if bd.Status.Display.State != string(fleet.WaitApplied) {
		t.Errorf("state %s while values are missing", bd.Status.Display.State)
	}
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "s"}, StringData: map[string]string{"v": "tax: hunter2"}})
	w.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "c"}, Data: map[string]string{"values.yaml": "tax: high\ncolour: blue"}})
	w.until("web", ready)
	if got := w.data(shop, "cm", "all"); got != "blue large hunter2" {
		t.Errorf("got %q, want the Secret over the ConfigMap over the bundle over the chart", got)
	}

	// Nothing of a Secret is shown.
	w.edit(w.must("v1/ConfigMap", shop, "cm"), "kubectl", `{"data":{"all":"mine"}}`)
	bd = w.until("web", in(fleet.Modified))
	if text := fmt.Sprintf("%+v", bd.Status); strings.Contains(text, "hunter2") || !strings.Contains(text, "data.all") {
		t.Errorf("the status shows the secret, or not the field: %s", text)
	}
}

// TestRendersThatFailShowNoSecret: whatever is wrong with a render that a Secret
// went into, its values are not in the words that say so.
func TestRendersThatFailShowNoSecret(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shop}})
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "s"}, StringData: map[string]string{"values.yaml": "password: \"@hunter2\"\n"}})
	object := "-- templates/cm.yaml --\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\ndata:\n  "
	schema := `{"properties":{"password":{"enum":["a","b"]}}}`
	for bundle, files := range map[string]string{
		"parser": object + "password: {{ .Values.password }}\n",
		"fail":   object + "password: {{ fail .Values.password }}\n",
		"lookup": object + `password: {{ fail (lookup "v1" "Secret" .Release.Namespace "s" | toJson) }}` + "\n",
		"schema": object + "a: b\n-- values.schema.json --\n" + schema + "\n",
	} {
		helm := &fleet.HelmOptions{ValuesFrom: []fleet.ValuesFrom{{SecretKeyRef: &fleet.SecretKeySelector{LocalObjectReference: fleet.LocalObjectReference{Name: "s"}}}}}
		if bundle == "lookup" {
			helm = nil
		}
		w.deploySource(bundle, chart+files, fleet.BundleDeploymentOptions{DefaultNamespace: shop, Helm: helm})
	}
	w.start()
	for bundle, where := range map[string]string{
		"parser": "templates/cm.yaml:5: ", "fail": "templates/cm.yaml:5: ", "lookup": "templates/cm.yaml:5: ", "schema": "(InvalidValues)",
	} {
		bd := w.until(bundle, in(fleet.ErrApplied))
		if text := fmt.Sprintf("%+v", bd.Status); strings.Contains(text, "hunter2") || strings.Contains(text, "aHVudGVyMg") || !strings.Contains(deployedMessage(bd), where) {
			t.Errorf("%s shows the secret, or does not say %q: %s", bundle, where, text)
		}
	}
}

func TestLookupsAndRandomOutputAreRenderedOnce(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shop}})
	w.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "there"}, Data: map[string]string{"next": "second"}})
	w.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "second"}, Data: map[string]string{"v": "found"}})
	template := func(more string) string {
		return chart + `-- templates/cm.yaml --
{{- $first := lookup "v1" "ConfigMap" .Release.Namespace "there" }}
{{- $second := lookup "v1" "ConfigMap" .Release.Namespace $first.data.next }}
apiVersion: v1
kind: ConfigMap
metadata: {name: cm}
data:
  found: {{ $second.data.v }}
  none: "{{ len (lookup "v1" "ConfigMap" .Release.Namespace "missing") }}"
  many: "{{ gt (len (lookup "v1" "ConfigMap" .Release.Namespace "").items) 1 }}"
  random: {{ randAlphaNum 12 }}
  more: "` + more + "\"\n"
	}
	w.deploySource("web", template("1"), fleet.BundleDeploymentOptions{DefaultNamespace: shop})
	w.start()
	w.until("web", ready)
	for key, want := range map[string]string{"found": "found", "none": "0", "many": "true"} {
		if got := w.data(shop, "cm", key); got != want {
			t.Errorf("%s: got %q, want %q", key, got, want)
		}
	}
	random := w.data(shop, "cm", "random")

	// A restart, also without the hub, renders nothing again.
	w.stop()
	w.hub.Cut(true)
	w.edit(w.must("v1/ConfigMap", shop, "there"), "kubectl", `{"data":{"next":"elsewhere"}}`)
	w.start()
	w.edit(w.must("v1/ConfigMap", shop, "cm"), "kubectl", `{"data":{"found":"mine"}}`)
	w.hub.Cut(false)
	bd := w.until("web", in(fleet.Modified))
	if got := w.data(shop, "cm", "random"); got != random || len(bd.Status.ModifiedStatus) != 1 || len(bd.Status.ModifiedStatus[0].Fields) != 1 {
		t.Errorf("random was %s, is %s; drift %+v", random, got, bd.Status.ModifiedStatus)
	}

	// A change of the source does.
	w.edit(w.must("v1/ConfigMap", shop, "there"), "kubectl", `{"data":{"next":"second"}}`)
	w.deploySource("web", template("2"), fleet.BundleDeploymentOptions{DefaultNamespace: shop})
	w.until("web", ready)
	if w.data(shop, "cm", "more") != "2" || w.data(shop, "cm", "random") == random {
		t.Error("the new source was not rendered")
	}
}

// TestGeneratedCertificatesStay renders a chart that makes certificates of its
// own: neither a new start of the agent nor a correction makes them anew.
func TestGeneratedCertificatesStay(t *testing.T) {
	files := rendertest.Chart(t, "kyverno")
	w := newWorld(t)
	shop := w.ns("shop")
	own := map[string]any{"createSelfSignedCert": true}
	w.deployRequest(render.Request{Files: files, Bundle: "kyverno", Options: fleet.BundleDeploymentOptions{DefaultNamespace: shop, Helm: &fleet.HelmOptions{
		Values: &fleet.GenericMap{Data: map[string]any{
			"crds": map[string]any{"install": false}, "admissionController": own, "cleanupController": own,
		}},
	}}})
	w.deploy("kyverno", nil, func(bd *fleet.BundleDeployment) { bd.Spec.CorrectDrift = &fleet.CorrectDrift{Enabled: true} })
	w.start()
	w.until("kyverno", applied)
	certificates := func() map[string]string {
		t.Helper()
		list := &corev1.SecretList{}
		if err := server.client.List(w.ctx, list, client.InNamespace(shop), client.HasLabels{fleet.DeploymentLabel}); err != nil {
			t.Fatal(err)
		}
		versions := map[string]string{}
		for i := range list.Items {
			if len(list.Items[i].Data["tls.crt"]) > 0 {
				versions[list.Items[i].Name] = list.Items[i].ResourceVersion
			}
		}
		return versions
	}
	first := certificates()
	if len(first) < 4 {
		t.Fatalf("the chart has made %d certificates: %v", len(first), first)
	}
	w.stop()
	w.start()
	accounts := &corev1.ServiceAccountList{}
	if err := server.client.List(w.ctx, accounts, client.InNamespace(shop), client.HasLabels{fleet.DeploymentLabel}); err != nil || len(accounts.Items) == 0 {
		t.Fatalf("%d accounts: %v", len(accounts.Items), err)
	}
	account := &accounts.Items[0]
	if err := server.client.Delete(w.ctx, account); err != nil {
		t.Fatal(err)
	}
	w.eventually(func() error {
		_, err := w.object("v1/ServiceAccount", shop, account.Name)
		return err
	})
	w.until("kyverno", applied)
	if again := certificates(); !maps.Equal(again, first) {
		t.Errorf("certificates were written again: %v, were %v", again, first)
	}
}

func TestLookupThatIsRefusedSaysWhere(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	w.deploySource("web", chart+"-- templates/cm.yaml --\n\n{{ lookup \"example.com/v1\" \"Unicorn\" \"\" \"x\" }}\n", fleet.BundleDeploymentOptions{DefaultNamespace: shop})
	w.start()
	bd := w.until("web", in(fleet.ErrApplied))
	if m := deployedMessage(bd); !strings.Contains(m, "templates/cm.yaml:2") || !strings.Contains(m, "this cluster has no kind Unicorn") {
		t.Errorf("message: %s", m)
	}
}

func TestPlainYAMLIsFilledInOnTheClusterToo(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shop}})
	files := "-- cm.yaml --\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\ndata: {env: \"${ .ClusterLabels.env }\"}\n"
	w.deployRequest(render.Request{
		Files: rendertest.Files(files), Bundle: "web",
		Options: fleet.BundleDeploymentOptions{DefaultNamespace: shop, TemplateManifests: true},
		Cluster: &templating.Cluster{Labels: map[string]string{"env": "prod"}},
	})
	w.start()
	w.until("web", ready)
	if got := w.data(shop, "cm", "env"); got != "prod" {
		t.Errorf("got %q", got)
	}
}

// valuesChange writes values to the cluster and lets an agent look at them at
// once, as it does when it starts.
func (w *world) valuesChange(shop, values string) {
	w.t.Helper()
	w.stop()
	w.edit(w.must("v1/ConfigMap", shop, "values"), "kubectl", fmt.Sprintf(`{"data":{"values.yaml":%q}}`, values))
	w.start()
}

// TestReleaseOfChangedValuesThatFails: a release that values on the cluster have
// begun fails like any other. It is told, nothing is run again, and correcting
// the values is a release of its own.
func TestReleaseOfChangedValuesThatFails(t *testing.T) {
	for name, test := range map[string]struct {
		atomic bool
		says   string
		left   string
	}{
		"without atomic": {says: "post-upgrade hook Job", left: "blue"},
		"atomic":         {atomic: true, says: "went back to what ran before (helm.atomic)", left: "red"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			shop := w.ns("shop")
			w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shop}})
			w.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "values"}, Data: map[string]string{"values.yaml": "colour: red"}})
			files := chart + "-- templates/cm.yaml --\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\ndata: {colour: {{ .Values.colour }}}\n" +
				"-- templates/check.yaml --\n" + job(shop, "check", `helm.sh/hook: post-upgrade, helm.sh/hook-delete-policy: "before-hook-creation,hook-failed,hook-succeeded"`)
			options := fleet.BundleDeploymentOptions{DefaultNamespace: shop, Helm: &fleet.HelmOptions{
				ValuesFrom: []fleet.ValuesFrom{{ConfigMapKeyRef: &fleet.ConfigMapKeySelector{LocalObjectReference: fleet.LocalObjectReference{Name: "values"}}}},
			}}
			w.deployRequest(render.Request{Files: rendertest.Files(files), Bundle: "web", Options: options}, func(bd *fleet.BundleDeployment) { bd.Spec.Options.Helm.Atomic = test.atomic })
			w.start()
			w.until("web", ready)

			w.valuesChange(shop, "colour: blue")
			w.end(shop, "check", "Failed")
			failed := func(bd *fleet.BundleDeployment) error {
				if err := in(fleet.ErrApplied)(bd); err != nil {
					return err
				}
				return says(test.says)(bd)
			}
			w.until("web", failed)
			left := func() {
				t.Helper()
				w.eventually(func() error {
					if got := w.data(shop, "cm", "colour"); got != test.left {
						return fmt.Errorf("it is %s, want %s", got, test.left)
					}
					return nil
				})
			}
			left()
			w.absent("batch/v1/Job", shop, "check")

			w.stop()
			w.start()
			w.never("web", func(bd *fleet.BundleDeployment) bool { return failed(bd) != nil })
			left()
			w.absent("batch/v1/Job", shop, "check")

			w.valuesChange(shop, "colour: green")
			w.end(shop, "check", "Complete")
			w.until("web", ready)
			if got := w.data(shop, "cm", "colour"); got != "green" {
				t.Errorf("it is %s", got)
			}
		})
	}
}

// TestValuesThatDoNotRender: what runs goes on, and what is wrong is told.
func TestValuesThatDoNotRender(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shop}})
	w.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "values"}, Data: map[string]string{"values.yaml": "colour: red"}})
	files := chart + "-- templates/cm.yaml --\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\ndata: {colour: {{ .Values.colour }}}\n{{ if eq .Values.colour \"blue\" }}{{ fail \"no blue\" }}{{ end }}\n"
	w.deploySource("web", files, fleet.BundleDeploymentOptions{DefaultNamespace: shop, Helm: &fleet.HelmOptions{
		ValuesFrom: []fleet.ValuesFrom{{ConfigMapKeyRef: &fleet.ConfigMapKeySelector{LocalObjectReference: fleet.LocalObjectReference{Name: "values"}}}},
	}})
	w.start()
	w.until("web", ready)
	w.valuesChange(shop, "colour: blue")
	w.until("web", in(fleet.ErrApplied))
	w.until("web", says("no blue"))
	w.valuesChange(shop, "colour: green")
	w.eventually(func() error {
		if got := w.data(shop, "cm", "colour"); got != "green" {
			return fmt.Errorf("it is %s", got)
		}
		return nil
	})
	w.until("web", ready)
}

// TestWhatCannotRenderHoldsUpNobody: a bundle whose content cannot be rendered
// takes nothing over; what leaves the others goes.
func TestWhatCannotRenderHoldsUpNobody(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shop}})
	from := func(name string) fleet.BundleDeploymentOptions {
		return fleet.BundleDeploymentOptions{DefaultNamespace: shop, Helm: &fleet.HelmOptions{
			ValuesFrom: []fleet.ValuesFrom{{ConfigMapKeyRef: &fleet.ConfigMapKeySelector{LocalObjectReference: fleet.LocalObjectReference{Name: name}}}},
		}}
	}
	template := "-- templates/cm.yaml --\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\n"
	w.deploySource("waits", chart+template, from("missing"))
	w.deploySource("broken", chart+"-- templates/cm.yaml --\n{{ fail \"never\" }}\n", fleet.BundleDeploymentOptions{DefaultNamespace: shop})
	w.deploy("web", []string{configMap(shop, "a", "1"), configMap(shop, "dropped", "1")})
	w.deploy("goes", []string{configMap(shop, "removed", "1")})
	w.start()
	w.until("web", ready)
	w.until("goes", ready)
	w.until("broken", in(fleet.ErrApplied))
	w.deploy("web", []string{configMap(shop, "a", "1")})
	w.deploy("goes", nil, marked)
	w.until("web", ready)
	w.until("goes", gone)
	w.absent("v1/ConfigMap", shop, "dropped")
	w.absent("v1/ConfigMap", shop, "removed")
}
