package hubtest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/content/registry/registrytest"
	"github.com/flotilla-sh/flotilla/internal/source/chart/charttest"
	"github.com/flotilla-sh/flotilla/internal/source/cosign/cosigntest"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// chartWorld is a hub, a Git repository and a chart repository that asks for a
// password.
type chartWorld struct {
	*whole
	charts *charttest.Server
	push   func(name string, files map[string]string) string
	url    string
}

func newChartWorld(t *testing.T) *chartWorld {
	w := &chartWorld{whole: newWhole(t), charts: charttest.Serve(t)}
	w.charts.Username, w.charts.Password = "me", "hunter2"
	push, url := w.serveGit()
	w.push, w.url = push, url+"/repo.git"
	w.create(&corev1.Secret{ObjectMeta: w.meta("helm"), Data: map[string][]byte{"username": []byte("me"), "password": []byte("hunter2")}})
	return w
}

func (w *chartWorld) commit(files map[string]string) {
	w.Helper()
	for name, text := range files {
		files[name] = strings.ReplaceAll(text, "REPO", w.charts.URL)
	}
	w.push("repo", files)
}

// versions are those of the charts of a bundle, as its spec says.
func (w *chartWorld) versions(name string) string {
	w.Helper()
	b := &fleet.Bundle{ObjectMeta: w.meta(name)}
	if !w.exists(b) {
		return ""
	}
	var all []string
	for _, c := range b.Spec.Charts {
		all = append(all, c.Chart+" "+c.Version)
	}
	return strings.Join(all, ", ")
}

func (w *chartWorld) stalled() string {
	w.Helper()
	repo := &fleet.GitRepo{ObjectMeta: w.meta("repo")}
	if !w.exists(repo) || !fleet.IsConditionTrue(repo.Status.Conditions, fleet.ConditionStalled) {
		return ""
	}
	return fleet.FindCondition(repo.Status.Conditions, fleet.ConditionStalled).Message
}

// TestChartsOfAGitRepo follows a constraint over commits, restarts and the loss
// of the chart repository.
func TestChartsOfAGitRepo(t *testing.T) {
	w := newChartWorld(t)
	w.charts.Add("app", "1.0.0")
	stop := w.start()
	spaces := w.clusters(1)
	w.commit(map[string]string{
		"app/fleet.yaml": "helm: {repo: REPO, chart: app, version: ^1}\n",
		"plain/cm.yaml":  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain, namespace: default}\n",
	})
	repo := &fleet.GitRepo{ObjectMeta: w.meta("repo"), Spec: fleet.GitRepoSpec{
		Repo: w.url, Branch: "main", Paths: []string{"app", "plain"}, HelmSecretName: "helm",
		PollingInterval: &metav1.Duration{Duration: time.Second},
		Targets:         []fleet.GitTarget{{ClusterSelector: &metav1.LabelSelector{}}},
	}}
	w.create(repo)
	// Without helmRepoURLRegex the credential stays here, and the neighbour goes on.
	w.eventually("refuse", func() bool { return strings.Contains(w.stalled(), "helmRepoURLRegex") })
	w.eventually("go on with the neighbour", func() bool { return w.exists(&fleet.Bundle{ObjectMeta: w.meta("repo-plain")}) })
	for _, r := range w.charts.Asked() {
		if r.Header.Get("Authorization") != "" {
			t.Error("the credential was sent without helmRepoURLRegex")
		}
	}
	w.change(func(spec *fleet.GitRepoSpec) { spec.HelmRepoURLRegex = "http://127[.].*" })
	w.eventually("take the chart", func() bool { return w.versions("repo-app") == "app 1.0.0" && w.stalled() == "" })
	w.agents(spaces, "repo-app", "repo-plain")
	d := &fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: spaces[0], Name: "repo-app"}}
	b := &fleet.Bundle{ObjectMeta: w.meta("repo-app")}
	if !w.exists(d) || !w.exists(b) || d.Spec.Content == nil {
		t.Fatal("the chart is not deployed")
	}
	for _, obj := range []client.Object{b, d} {
		if raw, _ := json.Marshal(obj); strings.Contains(string(raw), "hunter2") {
			t.Errorf("the credential is in %T", obj)
		}
	}

	// A newer chart alone changes nothing, not even for a hub that lost its disk
	// and cannot reach the repository.
	w.charts.Add("app", "1.1.0")
	w.charts.SetDown(true)
	stop()
	w.start()
	w.change(func(spec *fleet.GitRepoSpec) { spec.KeepResources = true })
	w.eventually("pack anew", func() bool { return w.exists(b) && b.Spec.KeepResources })
	if got := w.versions("repo-app"); got != "app 1.0.0" {
		t.Errorf("a restart takes %s", got)
	}

	// A commit looks for a newer one, and goes on looking while that fails.
	w.commit(map[string]string{"plain/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain, namespace: default}\ndata: {a: b}\n"})
	w.eventually("tell of the failure", func() bool { return strings.Contains(w.stalled(), "503") })
	if got := w.versions("repo-app"); got != "app 1.0.0" {
		t.Errorf("a failure leaves %s", got)
	}
	w.charts.SetDown(false)
	w.eventually("take the newer chart", func() bool { return w.versions("repo-app") == "app 1.1.0" && w.stalled() == "" })

	// Polling is for those who ask for it.
	w.charts.Add("app", "1.2.0")
	w.charts.Add("app", "2.0.0")
	w.change(func(spec *fleet.GitRepoSpec) { spec.ChartPollingInterval = &metav1.Duration{Duration: time.Second} })
	w.eventually("poll", func() bool { return w.versions("repo-app") == "app 1.2.0" })
	// Other tests share the API server.
	w.change(func(spec *fleet.GitRepoSpec) {
		spec.ChartPollingInterval, spec.PollingInterval = nil, &metav1.Duration{Duration: time.Hour}
	})
}

func (w *chartWorld) change(change func(*fleet.GitRepoSpec)) {
	w.Helper()
	repo := &fleet.GitRepo{ObjectMeta: w.meta("repo")}
	w.exists(repo)
	base := repo.DeepCopy()
	change(&repo.Spec)
	w.must(w.client.Patch(w.ctx, repo, client.MergeFrom(base)))
}

// TestChartSignatures asks for signatures of charts in an OCI registry.
func TestChartSignatures(t *testing.T) {
	w := newChartWorld(t)
	host, _, _ := strings.Cut(registrytest.Start(t, true).Reference, "/")
	key := cosigntest.New(t)
	registry := charttest.OpenRepository(t, host+"/app", registrytest.Username, registrytest.Password)
	push := func(version string) ocispec.Descriptor {
		return registry.Push("app", version, charttest.Pack("app", charttest.Chart("app", version)), nil)
	}
	first := push("1.0.0")
	registry.Refer(first, key.Bundle(first.Digest))
	w.create(&corev1.Secret{ObjectMeta: w.meta("signed"), Data: map[string][]byte{
		"username": []byte(registrytest.Username), "password": []byte(registrytest.Password), "basicHTTP": []byte("true"), "cosign.pub": key.PEM,
	}})
	w.start()
	w.clusters(1)
	commit := func(version string) {
		w.commit(map[string]string{
			"app/fleet.yaml": "helm: {chart: 'oci://" + host + "/app', version: " + version + "}\n",
			"plain/cm.yaml":  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain, namespace: default}\ndata: {beside: " + version + "}\n",
		})
	}
	commit("1.0.0")
	w.create(&fleet.GitRepo{ObjectMeta: w.meta("repo"), Spec: fleet.GitRepoSpec{
		Repo: w.url, Branch: "main", Paths: []string{"app", "plain"}, HelmSecretName: "signed", HelmRepoURLRegex: "oci://127[.].*",
		PollingInterval: &metav1.Duration{Duration: time.Second},
		Targets:         []fleet.GitTarget{{ClusterSelector: &metav1.LabelSelector{}}},
	}})
	at := func(version string) string { return "oci://" + host + "/app " + version }
	w.eventually("take the signed chart", func() bool { return w.versions("repo-app") == at("1.0.0") })
	plain := &fleet.Bundle{ObjectMeta: w.meta("repo-plain")}
	w.eventually("take its neighbour", func() bool { return w.exists(plain) })
	before := plain.Generation

	second := push("2.0.0")
	commit("2.0.0")
	w.eventually("refuse the unsigned chart", func() bool {
		return strings.Contains(w.stalled(), second.Digest.String()) && strings.Contains(w.stalled(), "no signature of cosign")
	})
	w.eventually("go on with the neighbour", func() bool { return w.exists(plain) && plain.Generation > before })
	if got := w.versions("repo-app"); got != at("1.0.0") {
		t.Errorf("an unsigned chart leaves %s", got)
	}
	op := &fleet.HelmOp{ObjectMeta: w.meta("op")}
	op.Spec.Helm = &fleet.HelmOptions{Repo: "oci://" + host + "/app", Version: "2.0.0"}
	op.Spec.HelmSecretName = "signed"
	op.Spec.Targets = []fleet.BundleTarget{{ClusterSelector: &metav1.LabelSelector{}}}
	w.create(op)
	w.eventually("refuse it in a HelmOp", func() bool {
		c := &fleet.Condition{}
		if w.exists(op) && fleet.FindCondition(op.Status.Conditions, fleet.ConditionAccepted) != nil {
			c = fleet.FindCondition(op.Status.Conditions, fleet.ConditionAccepted)
		}
		return c.Status == metav1.ConditionFalse && c.Reason == "ChartNotVerified" && strings.Contains(c.Message, second.Digest.String())
	})

	payload := cosigntest.Payload(second.Digest)
	registry.Sign(second, charttest.Signed{Payload: payload, Signature: key.SignPayload(payload)})
	w.change(func(spec *fleet.GitRepoSpec) { spec.ForceSyncGeneration++ })
	w.eventually("take it once it is signed", func() bool { return w.versions("repo-app") == at("2.0.0") && w.stalled() == "" })
	base := op.DeepCopy()
	op.Spec.ForceSyncGeneration++
	w.must(w.client.Patch(w.ctx, op, client.MergeFrom(base)))
	w.eventually("take it in the HelmOp", func() bool { return w.exists(op) && op.Status.Version == "2.0.0" })
}

// TestHelmOp deploys a chart without Git, follows its constraint as asked, and
// removes it.
func TestHelmOp(t *testing.T) {
	w := newChartWorld(t)
	w.charts.Add("app", "1.0.0")
	w.start()
	spaces := w.clusters(1)
	op := &fleet.HelmOp{ObjectMeta: w.meta("op")}
	op.Spec.Helm = &fleet.HelmOptions{Repo: w.charts.URL, Chart: "app", Version: "^1", Values: &fleet.GenericMap{Data: map[string]any{"colour": "s3cret"}}}
	op.Spec.Targets = []fleet.BundleTarget{{ClusterSelector: &metav1.LabelSelector{}}}
	op.Spec.Labels = map[string]string{"team": "web"}
	w.create(op)
	condition := func(kind string) fleet.Condition {
		w.exists(op)
		if c := fleet.FindCondition(op.Status.Conditions, kind); c != nil {
			return *c
		}
		return fleet.Condition{}
	}
	w.eventually("ask for a login", func() bool {
		c := condition(fleet.ConditionReady)
		return c.Status == metav1.ConditionFalse && c.Reason == "ChartUnauthorized"
	})
	change := func(change func(*fleet.HelmOpSpec)) {
		t.Helper()
		w.exists(op)
		base := op.DeepCopy()
		change(&op.Spec)
		w.must(w.client.Patch(w.ctx, op, client.MergeFrom(base)))
	}
	change(func(spec *fleet.HelmOpSpec) { spec.HelmSecretName = "helm" })
	w.agents(spaces, "op")
	w.eventually("be ready", func() bool { return condition(fleet.ConditionReady).Status == metav1.ConditionTrue })
	if op.Status.Version != "1.0.0" || op.Status.Display.ReadyBundleDeployments != "1/1" || op.Status.DesiredReadyClusters != 1 {
		t.Errorf("the status is %+v", op.Status)
	}
	b := &fleet.Bundle{ObjectMeta: w.meta("op")}
	if !w.exists(b) || b.Labels["team"] != "web" || b.Labels[fleet.HelmOpLabel] != "op" {
		t.Errorf("the bundle has the labels %v", b.Labels)
	}
	if raw, _ := json.Marshal(b); strings.Contains(string(raw), "s3cret") || strings.Contains(string(raw), "hunter2") {
		t.Error("a secret is in the bundle")
	}
	w.eventually("count for the cluster", func() bool {
		cluster := &fleet.Cluster{ObjectMeta: w.meta("c00")}
		return w.exists(cluster) && cluster.Status.ReadyHelmOps == 1 && cluster.Status.DesiredReadyHelmOps == 1 && cluster.Status.DesiredReadyGitRepos == 0
	})

	w.charts.Add("app", "1.1.0")
	change(func(spec *fleet.HelmOpSpec) { spec.Labels = map[string]string{"team": "db"} })
	w.eventually("change a label", func() bool { return w.exists(b) && b.Labels["team"] == "db" })
	if got := w.versions("op"); got != "app 1.0.0" {
		t.Errorf("without polling it is %s", got)
	}
	change(func(spec *fleet.HelmOpSpec) { spec.PollingInterval = &metav1.Duration{Duration: time.Second} })
	w.eventually("poll", func() bool { return w.versions("op") == "app 1.1.0" })
	w.agents(spaces, "op")
	w.eventually("show it", func() bool {
		return condition(fleet.ConditionPolled).Status == metav1.ConditionTrue && op.Status.Version == "1.1.0"
	})
	w.charts.SetDown(true)
	w.eventually("tell that it cannot poll", func() bool { return condition(fleet.ConditionPolled).Status == metav1.ConditionFalse })
	if got := w.versions("op"); got != "app 1.1.0" {
		t.Errorf("a failure leaves %s", got)
	}
	change(func(spec *fleet.HelmOpSpec) { spec.PollingInterval = nil })
	w.eventually("go on without polling", func() bool {
		return condition(fleet.ConditionReady).Status == metav1.ConditionTrue && condition(fleet.ConditionPolled).Status == ""
	})

	w.must(w.client.Delete(w.ctx, op))
	w.eventually("mark the deployment for removal", func() bool {
		d := &fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: spaces[0], Name: "op"}}
		if !w.exists(d) {
			return true
		}
		if d.Spec.Removal != nil {
			patch := fmt.Appendf(nil, `{"status":{"observedGeneration":%d,"removalState":{"done":true}}}`, d.Generation)
			w.must(client.IgnoreNotFound(w.client.Status().Patch(w.ctx, d, client.RawPatch("application/merge-patch+json", patch))))
		}
		return false
	})
	w.eventually("be gone", func() bool { return !w.exists(op) && !w.exists(b) })
}
