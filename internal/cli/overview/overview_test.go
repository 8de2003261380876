package overview

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

var update = flag.Bool("update", false, "rewrite golden files")

const namespace = "fleet-default"

// fleetOf is a GitRepo with bundles on clusters, all ready.
func fleetOf(bundles, clusters []string) Input {
	in := Input{GitRepos: []fleet.GitRepo{{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
		Status: fleet.GitRepoStatus{Commit: "0123456789abcdef", StatusBase: fleet.StatusBase{
			Conditions: []fleet.Condition{is(fleet.ConditionReady, metav1.ConditionTrue, "Ready", "")},
			Summary:    fleet.BundleSummary{Ready: len(bundles) * len(clusters), DesiredReady: len(bundles) * len(clusters)},
		}},
	}}}
	for _, name := range clusters {
		in.Clusters = append(in.Clusters, fleet.Cluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Status: fleet.ClusterStatus{
				Conditions: []fleet.Condition{
					is(fleet.ConditionReady, metav1.ConditionTrue, "Ready", ""), is(fleet.ConditionOnline, metav1.ConditionTrue, "Online", ""),
				},
				Summary: fleet.BundleSummary{Ready: len(bundles), DesiredReady: len(bundles)},
			},
		})
	}
	for _, name := range bundles {
		in.Bundles = append(in.Bundles, fleet.Bundle{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{fleet.RepoLabel: "web"}},
			Status: fleet.BundleStatus{
				ObservedGeneration: 1,
				Conditions: []fleet.Condition{
					is(fleet.ConditionReady, metav1.ConditionTrue, "Ready", ""), is(fleet.ConditionRendered, metav1.ConditionTrue, "Rendered", ""),
				},
				Summary: fleet.BundleSummary{Ready: len(clusters), DesiredReady: len(clusters)},
			},
		})
		for _, c := range clusters {
			in.Deployments = append(in.Deployments, deployed(name, c))
		}
	}
	return in
}

func is(conditionType string, status metav1.ConditionStatus, reason, message string) fleet.Condition {
	return fleet.Condition{Type: conditionType, Status: status, Reason: reason, Message: message}
}

func deployed(bundle, cluster string) fleet.BundleDeployment {
	return fleet.BundleDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "cluster-" + cluster, Name: bundle, Labels: map[string]string{
			fleet.RepoLabel: "web", fleet.BundleLabel: bundle, fleet.BundleNamespaceLabel: namespace,
			fleet.ClusterLabel: cluster, fleet.ClusterNamespaceLabel: namespace,
		}},
		Spec:   fleet.BundleDeploymentSpec{DeploymentID: "s-1:2", Content: &fleet.ContentRef{Digest: "abc"}},
		Status: fleet.BundleDeploymentStatus{AppliedDeploymentID: "s-1:2", Ready: true, NonModified: true},
	}
}

// on returns the deployment of a bundle on a cluster.
func (in *Input) on(bundle, cluster string) *fleet.BundleDeployment {
	i := slices.IndexFunc(in.Deployments, func(d fleet.BundleDeployment) bool {
		return d.Name == bundle && d.Labels[fleet.ClusterLabel] == cluster
	})
	return &in.Deployments[i]
}

func (in *Input) drift(bundle, cluster string, modified fleet.ModifiedStatus) {
	d := in.on(bundle, cluster)
	d.Status.NonModified = false
	d.Status.ModifiedStatus = []fleet.ModifiedStatus{modified}
}

// situations are fleets with something to tell.
func situations() map[string]func(*Input) {
	at := metav1.NewTime(time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC))
	return map[string]func(*Input){
		"all ready":              func(*Input) {},
		"nothing":                func(in *Input) { *in = Input{} },
		"nothing in a namespace": func(in *Input) { *in = Input{Namespace: "elsewhere"} },
		"the same on all clusters": func(in *Input) {
			for _, cluster := range []string{"dev", "prod"} {
				in.on("web-db", cluster).Status.Conditions = []fleet.Condition{is(fleet.ConditionDeployed, metav1.ConditionFalse, "Failed", "Backup shop/nightly: this cluster has no kind Backup")}
				in.on("web-db", cluster).Status.AppliedDeploymentID = ""
			}
			in.on("web-app", "prod").Status.AppliedDeploymentID = ""
		},
		"bundle by hand without clusters": func(in *Input) {
			in.GitRepos, in.Bundles, in.Deployments = nil, in.Bundles[:1], nil
			in.Bundles[0].Labels, in.Bundles[0].Status.Summary = nil, fleet.BundleSummary{}
		},
		"modified by a person": func(in *Input) {
			in.drift("web-app", "prod", fleet.ModifiedStatus{
				APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "app",
				Fields: []fleet.FieldDrift{{Path: "spec.replicas", Desired: "3", Live: "1"}, {Path: "metadata.labels.tier", Desired: `"gold"`}},
				By:     []fleet.FieldOwner{{Manager: "kubectl-edit", Operation: "Update", Time: &at}},
			})
		},
		"modified secret": func(in *Input) {
			in.drift("web-app", "prod", fleet.ModifiedStatus{
				APIVersion: "v1", Kind: "Secret", Namespace: "shop", Name: "login", Patch: `{"data":{"password":"aHVudGVyMg=="}}`,
				Fields: []fleet.FieldDrift{{Path: "data.password", Desired: "hunter2", Live: "hunter3"}},
			})
		},
		"missing object": func(in *Input) {
			in.drift("web-db", "dev", fleet.ModifiedStatus{APIVersion: "v1", Kind: "Service", Namespace: "shop", Name: "db", Create: true})
		},
		"cluster offline": func(in *Input) {
			in.Clusters[0].Status.Conditions[1] = is(fleet.ConditionOnline, metav1.ConditionFalse, "Offline",
				"the agent is silent; it last reported at 2026-03-04T05:06:07Z")
			in.on("web-app", "dev").Status.Ready = false
		},
		"cluster never seen": func(in *Input) { in.Clusters[1].Status.Conditions = nil },
		"cluster without a place": func(in *Input) {
			in.Clusters[1].Status.Conditions = []fleet.Condition{is(fleet.ConditionProcessed, metav1.ConditionFalse, "NamespaceTaken",
				"the namespace on the hub belongs to another Cluster")}
		},
		"held back": func(in *Input) {
			in.Deployments = slices.DeleteFunc(in.Deployments, func(d fleet.BundleDeployment) bool {
				return d.Name == "web-app" && d.Labels[fleet.ClusterLabel] == "prod"
			})
			in.Bundles[0].Status.HeldBack = 2
			in.Bundles[0].Status.Conditions = []fleet.Condition{
				is(fleet.ConditionReady, metav1.ConditionFalse, "Error", "held"),
				is(fleet.ConditionRendered, metav1.ConditionFalse, "ValuesTemplateFailed",
					`cluster fleet-default/prod: the cluster has no label "env"; cluster fleet-default/test: the cluster has no label "env"`),
			}
		},
		"git server away": func(in *Input) {
			in.GitRepos[0].Status.Conditions = []fleet.Condition{
				is(fleet.ConditionReady, metav1.ConditionFalse, "Unreachable", "no answer"),
				is(fleet.ConditionGitPolling, metav1.ConditionFalse, "Unreachable", "https://git.example.com does not answer"),
				is(fleet.ConditionStalled, metav1.ConditionTrue, "Unreachable", "https://git.example.com does not answer"),
			}
		},
		"hub away": func(in *Input) {
			in.GitRepos[0].Status = fleet.GitRepoStatus{}
			in.Bundles, in.Deployments = nil, nil
		},
		"apply failed": func(in *Input) {
			d := in.on("web-db", "prod")
			d.Status.AppliedDeploymentID = ""
			d.Status.Conditions = []fleet.Condition{is(fleet.ConditionDeployed, metav1.ConditionFalse, "Failed",
				"Backup shop/nightly: this cluster has no kind Backup")}
		},
		"not ready": func(in *Input) {
			d := in.on("web-app", "dev")
			d.Status.Ready, d.Status.IncompleteState = false, true
			d.Status.NonReadyStatus = []fleet.NonReadyStatus{{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "app",
				Summary: fleet.Summary{State: "in progress", Error: true, Message: []string{"0 of 3 pods"}}}}
		},
		"fields without effect": func(in *Input) {
			in.Bundles[1].Status.Conditions = append(in.Bundles[1].Status.Conditions,
				is(fleet.ConditionEffective, metav1.ConditionFalse, fleet.ReasonNotYetEffective, "accepted, but without effect yet: rolloutStrategy"))
		},
		"being removed": func(in *Input) {
			in.on("web-db", "prod").Spec.Removal = &fleet.Removal{Reason: "the bundle was deleted"}
			in.on("web-db", "dev").Status.HeldObjects = []fleet.ObjectRef{{APIVersion: "v1", Kind: "Namespace", Name: "shop"}}
		},
		"roll-up behind": func(in *Input) {
			in.Bundles[0].Status.Conditions[0] = is(fleet.ConditionReady, metav1.ConditionFalse, "NotReady", "NotReady(1)")
		},
		"chart not found": func(in *Input) {
			in.GitRepos = nil
			in.HelmOps = []fleet.HelmOp{{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "db"}}}
			in.HelmOps[0].Status.Conditions = []fleet.Condition{
				is(fleet.ConditionReady, metav1.ConditionFalse, "ChartNotFound", "no version 9.9.9"),
				is(fleet.ConditionAccepted, metav1.ConditionFalse, "ChartNotFound", "no version 9.9.9"),
			}
		},
		"chart without clusters": func(in *Input) {
			*in = Input{HelmOps: []fleet.HelmOp{{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "db"}}}}
			in.HelmOps[0].Status.Version = "1.2.3"
			in.HelmOps[0].Status.Conditions = []fleet.Condition{is(fleet.ConditionReady, metav1.ConditionTrue, "Ready", "")}
		},
		"offline elsewhere": func(in *Input) {
			in.Namespace = namespace
			situations()["cluster offline"](in)
			in.Clusters[0].Namespace = "infra"
			in.Clusters = append(in.Clusters, in.Clusters[0])
			in.Clusters[2].Name = "not-reached"
			for _, bundle := range []string{"web-app", "web-db"} {
				in.on(bundle, "dev").Labels[fleet.ClusterNamespaceLabel] = "infra"
			}
		},
		"clusters not readable": func(in *Input) {
			in.Namespace, in.Clusters = namespace, nil
			in.Bundles[1].Status.Summary.Offline = 1
			in.Bundles[1].Status.Conditions[0] = is(fleet.ConditionReady, metav1.ConditionFalse, "Offline", "Offline(1)")
		},
		"deployments not readable": func(in *Input) {
			in.Deployments, in.Unread = nil, "bundledeployments is forbidden"
			in.Bundles[1].Status.Conditions[0] = is(fleet.ConditionReady, metav1.ConditionFalse, "NotReady", "NotReady(1)")
		},
		"on no cluster yet": func(in *Input) { in.GitRepo, in.Deployments = "web", nil },
		"no cluster": func(in *Input) {
			in.GitRepos[0].Status.Summary = fleet.BundleSummary{}
			in.Clusters, in.Deployments = nil, nil
		},
	}
}

// TestText keeps what a person reads of each situation in testdata.
func TestText(t *testing.T) {
	for name, change := range situations() {
		t.Run(name, func(t *testing.T) {
			in := fleetOf([]string{"web-app", "web-db"}, []string{"dev", "prod"})
			change(&in)
			report := Make(in)
			golden(t, name, textOf(t, &report))
			if report.Ready && len(report.Problems) > 0 {
				t.Errorf("ready, with %d problems", len(report.Problems))
			}
		})
	}
}

func textOf(t *testing.T, r *Report) string {
	t.Helper()
	var out bytes.Buffer
	if err := r.Write(&out, func(_, text string) string { return text }); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", strings.ReplaceAll(name, " ", "-")+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("run with -update if this is right (-want +got):\n%s", diff)
	}
}

// TestSecretsStaySecret looks into the form for programs, too.
func TestSecretsStaySecret(t *testing.T) {
	in := fleetOf([]string{"web-app"}, []string{"prod"})
	situations()["modified secret"](&in)
	text, err := json.Marshal(Make(in))
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"hunter", "aHVudGVyMg"} {
		if bytes.Contains(text, []byte(secret)) {
			t.Errorf("%q is in %s", secret, text)
		}
	}
}

// TestOfflineHidesOldWords: what a silent agent said last is not shown as now.
func TestOfflineHidesOldWords(t *testing.T) {
	in := fleetOf([]string{"web-app", "web-db"}, []string{"dev", "prod"})
	situations()["cluster offline"](&in)
	report := Make(in)
	for _, d := range report.Deployments {
		if offline := d.Cluster == "fleet-default/dev"; offline != (d.State == "Offline") {
			t.Errorf("%s on %s is %s", d.Bundle, d.Cluster, d.State)
		}
	}
	if len(report.Problems) != 1 || report.Problems[0].Kind != "Cluster" {
		t.Errorf("got %+v", report.Problems)
	}
}

func TestOneGitRepo(t *testing.T) {
	in := fleetOf([]string{"web-app"}, []string{"dev"})
	other := fleetOf([]string{"other-app"}, []string{"edge"})
	in.GitRepos = append(in.GitRepos, other.GitRepos[0])
	in.GitRepos[1].Name = "other"
	other.Bundles[0].Labels[fleet.RepoLabel], other.Deployments[0].Labels[fleet.RepoLabel] = "other", "other"
	in.Bundles, in.Clusters = append(in.Bundles, other.Bundles...), append(in.Clusters, other.Clusters...)
	in.Deployments = append(in.Deployments, other.Deployments...)
	in.GitRepo = "other"
	report := Make(in)
	if len(report.GitRepos) != 1 || report.GitRepos[0].Name != "other" ||
		len(report.Clusters) != 1 || report.Clusters[0].Name != "edge" || len(report.Deployments) != 1 {
		t.Errorf("got %+v", report)
	}
}

// TestWideFleets: there is no matrix that nobody can read.
func TestWideFleets(t *testing.T) {
	names := func(prefix string, n int) []string {
		out := make([]string, n)
		for i := range out {
			out[i] = prefix + string(rune('a'+i))
		}
		return out
	}
	for name, tt := range map[string]struct {
		bundles, clusters int
		head              string
	}{
		"few bundles":      {2, 20, "CLUSTER  b-a    b-b    CLUSTER IS"},
		"few clusters":     {20, 2, "BUNDLE  c-a    c-b    BUNDLE IS"},
		"many of both":     {20, 20, "CLUSTER  READY  STATE"},
		"no bundle at all": {0, 2, "CLUSTER  READY  STATE"},
	} {
		t.Run(name, func(t *testing.T) {
			report := Make(fleetOf(names("b-", tt.bundles), names("c-", tt.clusters)))
			if text := textOf(t, &report); !strings.Contains(text, "\n"+tt.head+"\n") {
				t.Errorf("%q is not in:\n%s", tt.head, text)
			}
		})
	}
}

// TestThousandClusters: what is well is left out, and what is told often enough.
func TestThousandClusters(t *testing.T) {
	var clusters []string
	for i := range 1000 {
		clusters = append(clusters, fmt.Sprintf("c%03d", i))
	}
	in := fleetOf([]string{"web-app", "web-db"}, clusters)
	report := Make(in)
	text := textOf(t, &report)
	if lines := strings.Count(text, "\n"); lines > 10 || !strings.Contains(text, "\n1000 clusters: all Ready\n") {
		t.Errorf("%d lines of a fleet that is well:\n%s", lines, text)
	}
	for i := range in.Clusters[:60] {
		in.Clusters[i].Status.Conditions[1] = is(fleet.ConditionOnline, metav1.ConditionFalse, "Offline", fmt.Sprintf("the agent is silent since %d", i))
	}
	for _, cluster := range clusters[500:] {
		in.drift("web-app", cluster, fleet.ModifiedStatus{APIVersion: "v1", Kind: "Service", Namespace: "shop", Name: "db", Create: true})
	}
	report = Make(in)
	text = textOf(t, &report)
	for _, want := range []string{
		"\nc000     Offline  Offline  Offline\n", "\n… and 520 more (-o json has them all)\n", "\n440 clusters: all Ready\n",
		"\n  and 50 more like this: Cluster: Offline (-o json has them all)\n",
		"\n  Bundle fleet-default/web-app on 500 clusters: Modified\n    fleet-default/c500, ", " and 492 more\n    Service shop/db missing\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in:\n%s", want, text)
		}
	}
	if lines := strings.Count(text, "\n"); lines > 90 {
		t.Errorf("%d lines", lines)
	}
	if len(report.Problems) != 560 {
		t.Errorf("%d problems for programs", len(report.Problems))
	}
}

func TestChanges(t *testing.T) {
	for name, want := range map[string][]string{
		"all ready": nil,
		"modified by a person": {
			`Bundle fleet-default/web-app on cluster fleet-default/prod: Modified, was Ready: Deployment shop/app modified by kubectl-edit (Update, 2026-03-04T05:06:07Z), spec.replicas: wanted 3, is 1, metadata.labels.tier: wanted "gold", is nothing`,
		},
		"cluster offline": {
			"Cluster fleet-default/dev: Offline, was Ready: the agent is silent; it last reported at 2026-03-04T05:06:07Z",
			"Bundle fleet-default/web-app on cluster fleet-default/dev: Offline, was Ready",
			"Bundle fleet-default/web-db on cluster fleet-default/dev: Offline, was Ready",
		},
		"held back": {
			"Bundle fleet-default/web-app on cluster fleet-default/prod: gone (was Ready)",
			`Bundle fleet-default/web-app: HeldBack: cluster fleet-default/prod: the cluster has no label "env"; cluster fleet-default/test: the cluster has no label "env"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			last := Make(fleetOf([]string{"web-app", "web-db"}, []string{"dev", "prod"}))
			in := fleetOf([]string{"web-app", "web-db"}, []string{"dev", "prod"})
			situations()[name](&in)
			next := Make(in)
			if diff := cmp.Diff(want, Changes(&last, &next)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
