package e2e

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/source/chart/charttest"
	"github.com/flotilla-sh/flotilla/internal/source/git/gittest"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// TestPrivateSources deploys from servers over TLS that ask for a login: a HelmOp
// from a chart repository, and a GitRepo that is asked once an hour and told of
// pushes. Its bundles use what the hub and the cluster add to a directory.
func TestPrivateSources(t *testing.T) {
	t.Parallel()
	w := shared
	charts := charttest.ServeTLS(t)
	charts.Username, charts.Password = "me", "ahoy"
	charts.Add("app", "1.0.0")
	server := gittest.ServeTLS(t)
	server.Logins["me"] = "ahoy"
	git := gittest.NewRepo(t, server.Root, "private")
	for name, text := range privateBundles() {
		git.Write(name, text)
	}
	first := git.Push("README.md", "one")

	w.create(t, w.hub, secret("charts", map[string]string{"username": "me", "password": "ahoy", "cacerts": string(charts.CA())}))
	w.create(t, w.hub, secret("git", map[string]string{"username": "me", "password": "ahoy"}, corev1.SecretTypeBasicAuth))
	w.create(t, w.hub, secret("hook", map[string]string{"github": "hunter2"}))
	w.create(t, w.hub, secret("login", map[string]string{"token": "t0ken"}))
	w.create(t, w.spokes["dev"], &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "colours"}, Data: map[string]string{"values.yaml": "colour: red"}})
	op := &fleet.HelmOp{ObjectMeta: metav1.ObjectMeta{Namespace: registration, Name: "op"}}
	op.Spec.Helm = &fleet.HelmOptions{Repo: charts.URL, Chart: "app", Version: "^1"}
	op.Spec.DefaultNamespace, op.Spec.HelmSecretName = "op", "charts"
	op.Spec.Targets = []fleet.BundleTarget{{Name: "dev", ClusterName: "dev"}}
	w.create(t, w.hub, op)
	repo := w.declare(t, "private", &repository{url: server.URL + "/private"}, only("dev"), func(g *fleet.GitRepo) {
		g.Spec.PollingInterval = &metav1.Duration{Duration: time.Hour}
		g.Spec.ClientSecretName, g.Spec.WebhookSecret = "git", "hook"
		g.Spec.CABundle = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	})

	w.rolledOut(t, repo, first)
	w.privateObjects(t)
	eventually(t, "the HelmOp is Ready", func() error {
		if err := w.hub.Get(t.Context(), client.ObjectKeyFromObject(op), op); err != nil {
			return err
		}
		if op.Status.Version != "1.0.0" {
			return fmt.Errorf("the version is %q", op.Status.Version)
		}
		return ready(op.Status.Conditions)
	})
	if got, err := w.configMap("dev", "op", "app"); err != nil || got.Data["version"] != "1.0.0" {
		t.Errorf("%v, of the HelmOp's chart: %v", err, got.Data)
	}

	second := git.Push("templated/a.yaml", configMapYAML("templated", "second on ${ .ClusterName }"))
	w.tellOfPush(t, server.URL+"/private", "hunter2", second)
	w.rolledOut(t, repo, second)
	w.hasValue(t, "private", "templated", "second on dev", "dev")
	if err := says(w.statusText(t, "private"), "private", second[:7]); err != nil {
		t.Error(err)
	}
	if err := w.hub.Delete(t.Context(), op); err != nil {
		t.Fatal(err)
	}
	eventually(t, "what the HelmOp deployed is gone", func() error { return gone(w.configMap("dev", "op", "app")) })
}

// privateBundles are the directories of the GitRepo.
func privateBundles() files {
	return files{
		"copies/fleet.yaml":        "namespace: copies\nnamespaceLabels: {team: web}\ndownstreamResources: [{kind: Secret, name: login}]\n",
		"copies/a.yaml":            configMapYAML("copies", "1"),
		"templated/fleet.yaml":     "namespace: private\ntemplateManifests: true\n",
		"templated/a.yaml":         configMapYAML("templated", "first on ${ .ClusterName }"),
		"chart/fleet.yaml":         "namespace: private\nhelm:\n  valuesFrom: [{configMapKeyRef: {name: colours, namespace: default, key: values.yaml}}]\n",
		"chart/Chart.yaml":         "apiVersion: v2\nname: chart\nversion: 1.0.0\n",
		"chart/templates/map.yaml": configMapYAML("chart", "{{ .Values.colour }}"),
	}
}

// privateObjects looks at what the bundles lead to on the cluster.
func (w *world) privateObjects(t *testing.T) {
	t.Helper()
	w.hasValue(t, "private", "templated", "first on dev", "dev")
	w.hasValue(t, "private", "chart", "red", "dev")
	login, copies := &corev1.Secret{}, &corev1.Namespace{}
	if err := w.spokes["dev"].Get(t.Context(), client.ObjectKey{Namespace: "copies", Name: "login"}, login); err != nil || string(login.Data["token"]) != "t0ken" {
		t.Errorf("the copy: %v, %d keys", err, len(login.Data))
	}
	if err := w.spokes["dev"].Get(t.Context(), client.ObjectKey{Name: "copies"}, copies); err != nil || copies.Labels["team"] != "web" {
		t.Errorf("the namespace: %v, labels %v", err, copies.Labels)
	}
	for bundle, source := range map[string]bool{"private-copies": false, "private-templated": false, "private-chart": true} {
		if d, ok := w.deployments(t, "private")["dev/"+bundle]; !ok || d.Spec.Content.Source != source {
			t.Errorf("%s is rendered on the cluster: %v", bundle, !source)
		}
	}
}

// tellOfPush calls the hub as GitHub does.
func (w *world) tellOfPush(t *testing.T, url, key, commit string) {
	t.Helper()
	body := fmt.Appendf(nil, `{"ref":"refs/heads/main","after":%q,"repository":{"clone_url":%q}}`, commit, url)
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write(body)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+w.webhooks, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-GitHub-Event", "push")
	req.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Errorf("the webhook was answered %s", res.Status)
	}
}

func secret(name string, data map[string]string, kind ...corev1.SecretType) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: registration, Name: name}, StringData: data}
	if len(kind) > 0 {
		s.Type = kind[0]
	}
	return s
}
