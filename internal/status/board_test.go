package status_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-sh/flotilla/internal/status"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// board is a fleet of bundles web and db on clusters dev, prod and edge, all
// ready, in group all.
func board(change ...*fleet.BundleDeployment) *status.Board {
	b := status.NewBoard()
	for _, c := range []string{"dev", "prod", "edge"} {
		b.SetCluster(ws(c), status.ClusterFacts{Groups: []types.NamespacedName{ws("all")}})
		for _, u := range []string{"web", "db"} {
			b.SetBundle(ws(u), status.BundleFacts{Source: from("repo")})
			b.Observe(deployment(u, c))
		}
	}
	for _, bd := range change {
		b.Observe(bd)
	}
	return b
}

func wantReady(t *testing.T, what string, got fleet.Condition, status metav1.ConditionStatus, reason, message string) {
	t.Helper()
	want := fleet.Condition{Type: "Ready", Status: status, Reason: reason, Message: message}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: %s", what, diff)
	}
}

func TestAllReady(t *testing.T) {
	b := board()
	u, c, r, g := b.Bundle(ws("web")), b.Cluster(ws("dev")), b.GitRepo(ws("repo"), "Current"), b.ClusterGroup(ws("all"))
	for what, ready := range map[string]fleet.Condition{"bundle": u.Ready, "cluster": c.Ready, "repo": r.Ready, "group": g.Ready} {
		wantReady(t, what, ready, "True", "Ready", "")
	}
	if u.Display.ReadyClusters != "3/3" || c.Display.ReadyBundles != "2/2" || r.Display.ReadyBundleDeployments != "6/6" ||
		g.Display.ReadyClusters != "3/3" || g.Display.ReadyBundles != "6/6" {
		t.Errorf("%+v %+v %+v %+v", u.Display, c.Display, r.Display, g.Display)
	}
	if u.Display.State+c.Display.State+r.Display.State+g.Display.State != "" {
		t.Errorf("a state is shown: %+v %+v %+v %+v", u.Display, c.Display, r.Display, g.Display)
	}
	if r.ReadyClusters != 3 || r.DesiredReadyClusters != 3 || c.ReadyGitRepos != 1 || c.DesiredReadyGitRepos != 1 {
		t.Errorf("clusters %d/%d, repos %d/%d", r.ReadyClusters, r.DesiredReadyClusters, c.ReadyGitRepos, c.DesiredReadyGitRepos)
	}
	if want := (fleet.ResourceCounts{Ready: 12, DesiredReady: 12}); r.ResourceCounts != want || g.ResourceCounts != want {
		t.Errorf("resources %+v %+v", r.ResourceCounts, g.ResourceCounts)
	}
}

// One deployment is not ready: every object above says which, and why.
func TestOneWrong(t *testing.T) {
	config := fleet.ModifiedStatus{APIVersion: "v1", Kind: "ConfigMap", Namespace: "web", Name: "cfg", Patch: `{"data":{"a":"b"}}`}
	pod := fleet.NonReadyStatus{APIVersion: "v1", Kind: "Pod", Namespace: "web", Name: "p"}
	pod.Summary.Error, pod.Summary.Message = true, []string{"ImagePullBackOff"}
	for name, test := range map[string]struct {
		change modifier
		state  string
		text   string
	}{
		"error":        {failing("boom"), "ErrApplied", "ErrApplied(1) [%s: boom]"},
		"given up":     {func(bd *fleet.BundleDeployment) { unready(bd); says("Installed", "not installed: no")(bd) }, "ErrApplied", "ErrApplied(1) [%s: not installed: no]"},
		"waiting":      {unapplied, "WaitApplied", "WaitApplied(1) [%s]"},
		"drift":        {modifiedBy(config), "Modified", `Modified(1) [%s]; configmap.v1 web/cfg modified {"data":{"a":"b"}}`},
		"paused":       {staged, "OutOfSync", "OutOfSync(1) [%s]"},
		"unhealthy":    {unhealthy(pod), "NotReady", "NotReady(1) [%s]; pod.v1 web/p [error] ImagePullBackOff"},
		"dependencies": {failing("dependent bundle(s) are not ready: [db]"), "ErrApplied", "ErrApplied(1) [%s: dependent bundle(s) are not ready: [db]]"},
	} {
		t.Run(name, func(t *testing.T) {
			b := board(deployment("web", "prod", test.change))
			say := func(who string) string { return replace(test.text, who) }
			u, c, r, g := b.Bundle(ws("web")), b.Cluster(ws("prod")), b.GitRepo(ws("repo"), ""), b.ClusterGroup(ws("all"))
			wantReady(t, "bundle", u.Ready, "False", test.state, say("Cluster ws/prod"))
			wantReady(t, "cluster", c.Ready, "False", test.state, say("Bundle web"))
			wantReady(t, "repo", r.Ready, "False", test.state, say("Cluster ws/prod"))
			wantReady(t, "group", g.Ready, "False", test.state, say("Cluster ws/prod"))
			for what, state := range map[string]string{"bundle": u.Display.State, "cluster": c.Display.State, "repo": r.Display.State, "group": g.Display.State} {
				if state != test.state {
					t.Errorf("%s shows %q", what, state)
				}
			}
			if u.Display.ReadyClusters != "2/3" || c.Display.ReadyBundles != "1/2" || r.Display.ReadyBundleDeployments != "5/6" || g.Display.ReadyClusters != "2/3 (ws/prod)" {
				t.Errorf("%+v %+v %+v %+v", u.Display, c.Display, r.Display, g.Display)
			}
			if r.ReadyClusters != 2 || r.DesiredReadyClusters != 3 || c.ReadyGitRepos != 0 || c.DesiredReadyGitRepos != 1 {
				t.Errorf("clusters %d/%d, repos %d/%d", r.ReadyClusters, r.DesiredReadyClusters, c.ReadyGitRepos, c.DesiredReadyGitRepos)
			}
			wantReady(t, "other bundle", b.Bundle(ws("db")).Ready, "True", "Ready", "")
			wantReady(t, "other cluster", b.Cluster(ws("dev")).Ready, "True", "Ready", "")
		})
	}
}

func replace(text, who string) string {
	at := slices.Index([]byte(text), '%')
	return text[:at] + who + text[at+2:]
}

func TestSilentCluster(t *testing.T) {
	const silence = "no report since 2026-01-02T03:04:05Z"
	b := board(deployment("web", "edge", failing("boom")))
	facts := status.ClusterFacts{Groups: []types.NamespacedName{ws("all")}, Silence: silence}
	changed := b.SetCluster(ws("edge"), facts)
	want := []status.Parent{
		{Kind: status.KindCluster, Name: ws("edge")}, {Kind: status.KindClusterGroup, Name: ws("all")},
		{Kind: status.KindBundle, Name: ws("web")}, {Kind: status.KindBundle, Name: ws("db")}, {Kind: status.KindGitRepo, Name: ws("repo")},
	}
	for _, p := range want {
		if !slices.Contains(changed, p) {
			t.Errorf("%v is not told", p)
		}
	}
	if len(changed) != len(want) {
		t.Errorf("told %v", changed)
	}
	wantReady(t, "bundle", b.Bundle(ws("web")).Ready, "Unknown", "Offline", "Offline(1) [Cluster ws/edge: "+silence+"]")
	wantReady(t, "cluster", b.Cluster(ws("edge")).Ready, "Unknown", "Offline", silence)
	wantReady(t, "repo", b.GitRepo(ws("repo"), "").Ready, "Unknown", "Offline", "Offline(1) [Cluster ws/edge: "+silence+"]")
	wantReady(t, "group", b.ClusterGroup(ws("all")).Ready, "Unknown", "Offline", "Offline(2) [Cluster ws/edge: "+silence+"]")
	s := b.Bundle(ws("web")).Summary
	if s.Offline != 1 || s.ErrApplied != 0 || s.Ready != 2 || s.DesiredReady != 3 {
		t.Errorf("summary %+v", s)
	}
	if r := b.Cluster(ws("edge")).ResourceCounts; r != (fleet.ResourceCounts{Unknown: 4, DesiredReady: 4}) {
		t.Errorf("resources %+v", r)
	}

	// What it said before it fell silent does not count, what it says after does.
	b.Observe(deployment("web", "edge", failing("worse")))
	wantReady(t, "late word", b.Bundle(ws("web")).Ready, "Unknown", "Offline", "Offline(1) [Cluster ws/edge: "+silence+"]")
	if again := b.SetCluster(ws("edge"), facts); len(again) != 0 {
		t.Errorf("nothing changed, yet told: %v", again)
	}
	facts.Silence = ""
	b.SetCluster(ws("edge"), facts)
	wantReady(t, "back", b.Bundle(ws("web")).Ready, "False", "ErrApplied", "ErrApplied(1) [Cluster ws/edge: worse]")

	// A known failure is shown before a silence.
	b.SetCluster(ws("dev"), status.ClusterFacts{Silence: silence})
	if got := b.GitRepo(ws("repo"), "").Ready.Reason; got != "ErrApplied" {
		t.Errorf("repo shows %s first", got)
	}
}

func TestClusterThatNeverReported(t *testing.T) {
	b := board()
	b.SetCluster(ws("new"), status.ClusterFacts{Groups: []types.NamespacedName{ws("all")}, Unseen: true})
	c, g := b.Cluster(ws("new")), b.ClusterGroup(ws("all"))
	if c.Ready.Status != "Unknown" || c.Ready.Reason != "NeverSeen" || c.Display.State != "WaitCheckIn" {
		t.Errorf("%+v %+v", c.Ready, c.Display)
	}
	wantReady(t, "group", g.Ready, "Unknown", "Offline", "1 of 4 clusters do not report: ws/new")
	if g.Display.ReadyClusters != "3/4 (ws/new)" || g.NonReadyClusterCount != 1 {
		t.Errorf("%+v", g)
	}
}

func TestBundleHeldBack(t *testing.T) {
	b := board()
	held := map[types.NamespacedName]status.HeldBack{
		ws("prod"): {Namespace: "cluster-prod", Why: "values: cluster label region is missing"},
		ws("new"):  {Namespace: "cluster-new", Why: "waits for partition 2"},
	}
	b.SetBundle(ws("web"), status.BundleFacts{Source: from("repo"), Held: held})
	wantReady(t, "bundle", b.Bundle(ws("web")).Ready, "False", "OutOfSync",
		"OutOfSync(1) [Cluster ws/prod: values: cluster label region is missing]; Pending(1) [Cluster ws/new: waits for partition 2]")
	wantReady(t, "cluster", b.Cluster(ws("prod")).Ready, "False", "OutOfSync",
		"OutOfSync(1) [Bundle web: values: cluster label region is missing]")
	if got := b.Bundle(ws("web")).Display.ReadyClusters; got != "2/4" {
		t.Errorf("ready %s", got)
	}
	b.Observe(deployment("web", "prod", failing("boom")))
	if got := b.Cluster(ws("prod")).Ready.Reason; got != "ErrApplied" {
		t.Errorf("an error is hidden by being held back: %s", got)
	}
	b.Observe(deployment("web", "prod"))
	b.Observe(deployment("web", "new"))
	b.Forget("cluster-new", "web")
	if got := b.Cluster(ws("new")).Ready.Reason; got != "Pending" {
		t.Errorf("a deployment that went while held back: %s", got)
	}
	b.SetBundle(ws("web"), status.BundleFacts{Source: from("repo")})
	wantReady(t, "released", b.Bundle(ws("web")).Ready, "True", "Ready", "")
	if got := b.Bundle(ws("web")).Display.ReadyClusters; got != "3/3" {
		t.Errorf("ready %s", got)
	}
}

func TestBundleError(t *testing.T) {
	b := board(deployment("db", "dev", unapplied))
	changed := b.SetBundle(ws("web"), status.BundleFacts{Source: from("repo"), Error: "targets: no such cluster group"})
	if !slices.Contains(changed, status.Parent{Kind: status.KindGitRepo, Name: ws("repo")}) {
		t.Errorf("the GitRepo is not told: %v", changed)
	}
	wantReady(t, "bundle", b.Bundle(ws("web")).Ready, "False", "Error", "targets: no such cluster group")
	r := b.GitRepo(ws("repo"), "")
	wantReady(t, "repo names its first bundle", r.Ready, "False", "WaitApplied", "WaitApplied(1) [Cluster ws/dev]")
	b.Observe(deployment("db", "dev"))
	r = b.GitRepo(ws("repo"), "InProgress")
	wantReady(t, "repo", r.Ready, "False", "Error", "targets: no such cluster group")
	if !r.Display.Error || r.Display.Message != r.Ready.Message || r.Display.State != "GitUpdating" {
		t.Errorf("%+v", r.Display)
	}
}

func TestGitRepoListsWhatIsWrong(t *testing.T) {
	missing := fleet.ModifiedStatus{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "web", Name: "front", Create: true}
	pod := fleet.NonReadyStatus{APIVersion: "v1", Kind: "Node", Name: "n"}
	b := board(deployment("web", "dev", modifiedBy(missing)), deployment("web", "prod", modifiedBy(missing)), deployment("db", "edge", unhealthy(pod)))
	want := []fleet.Resource{
		{APIVersion: "v1", Kind: "Node", Type: "node", ID: "n", Name: "n", State: "NotReady",
			PerClusterState: fleet.PerClusterState{NotReady: []string{"ws/edge"}}},
		{APIVersion: "apps/v1", Kind: "Deployment", Type: "apps.deployment", ID: "web/front", Namespace: "web", Name: "front", State: "Missing",
			PerClusterState: fleet.PerClusterState{Missing: []string{"ws/dev", "ws/prod"}}},
	}
	if diff := cmp.Diff(want, b.GitRepo(ws("repo"), "").Resources); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsBeingRemovedDoesNotCount(t *testing.T) {
	b := board()
	b.Observe(deployment("web", "prod", func(bd *fleet.BundleDeployment) { bd.Spec.Removal = &fleet.Removal{} }))
	if got := b.Bundle(ws("web")).Display.ReadyClusters; got != "2/2" {
		t.Errorf("bundle %s", got)
	}
	if c := b.Cluster(ws("prod")); c.Display.ReadyBundles != "1/1" || c.DesiredReadyGitRepos != 1 {
		t.Errorf("cluster %+v", c)
	}
}

// Sizes do not grow with the fleet.
func TestRollUpsAreCapped(t *testing.T) {
	b := status.NewBoard()
	for i := range 300 {
		c := numbered("c", i)
		b.SetCluster(ws(c), status.ClusterFacts{Groups: []types.NamespacedName{ws("all")}})
		b.Observe(deployment("web", c, modifiedBy(fleet.ModifiedStatus{Kind: "Pod", APIVersion: "v1", Name: c})))
	}
	u, g, r := b.Bundle(ws("web")), b.ClusterGroup(ws("all")), b.GitRepo(ws("repo"), "")
	if len(u.Summary.NonReadyResources) != 10 || len(g.NonReadyClusters) != 10 || len(r.Resources) > 25 || len(g.Summary.NonReadyResources) != 10 {
		t.Errorf("%d %d %d", len(u.Summary.NonReadyResources), len(g.NonReadyClusters), len(r.Resources))
	}
	if g.Display.ReadyClusters[:len("0/300 (ws/c00000, ")] != "0/300 (ws/c00000, " || g.NonReadyClusterCount != 300 {
		t.Errorf("%+v", g.Display)
	}
}
