package e2e

import (
	"maps"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flotilla-sh/flotilla/internal/lab"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

func TestCommitRevertAndRemove(t *testing.T) {
	t.Parallel()
	w := shared
	r := w.repository(t, "basic")
	first := r.commit(files{
		"one/fleet.yaml": "defaultNamespace: basic-one\n", "one/cm.yaml": configMapYAML("one", "1"),
		"two/fleet.yaml": "defaultNamespace: basic-two\n", "two/cm.yaml": configMapYAML("two", "1"),
	})
	repo := w.declare(t, "basic", r)
	w.rolledOut(t, repo, first)
	w.hasValue(t, "basic-one", "one", "1", all...)
	before := w.digests(t, "basic")
	if len(before) != 6 {
		t.Fatalf("want 2 bundles on 3 clusters, got %v", before)
	}

	second := r.commit(files{"one/cm.yaml": configMapYAML("one", "2")})
	w.rolledOut(t, repo, second)
	w.hasValue(t, "basic-one", "one", "2", all...)
	for key, id := range w.digests(t, "basic") {
		if changed := id != before[key]; changed != (key[len(key)-3:] == "one") {
			t.Errorf("%s: changed is %v after a commit to one/", key, changed)
		}
	}

	r.git("revert", "--no-edit", "HEAD")
	w.rolledOut(t, repo, r.push())
	w.hasValue(t, "basic-one", "one", "1", all...)
	if now := w.digests(t, "basic"); !maps.Equal(now, before) {
		t.Errorf("after the revert the digests are %v, want %v", now, before)
	}

	w.rolledOut(t, repo, r.commit(files{"two": ""}))
	for _, spoke := range all {
		eventually(t, "the bundle that left Git leaves "+spoke, func() error { return gone(w.configMap(spoke, "basic-two", "two")) })
	}
	w.hasValue(t, "basic-one", "one", "1", all...)
}

// gone is nil where a read found nothing.
func gone[T any](_ T, err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil {
		err = errStillThere
	}
	return err
}

func TestCommitThatChangesNothingMakesNoTraffic(t *testing.T) {
	t.Parallel()
	w := shared
	r := w.repository(t, "still")
	repo := w.declare(t, "still", r)
	w.rolledOut(t, repo, r.commit(files{"app/fleet.yaml": "defaultNamespace: still\n", "app/cm.yaml": configMapYAML("still", "1")}))
	before := versions(w.deployments(t, "still"))
	w.rolledOut(t, repo, r.commit(files{"README.md": "# words only\n"}))
	if after := versions(w.deployments(t, "still")); !maps.Equal(before, after) {
		t.Errorf("deployments were written: %v, before %v", after, before)
	}
}

func versions(all map[string]fleet.BundleDeployment) map[string]string {
	out := map[string]string{}
	for key, d := range all {
		out[key] = d.ResourceVersion
	}
	return out
}

func TestSpokeCutOffForTwoCommitsGetsOnlyTheLast(t *testing.T) {
	w := shared
	r := w.repository(t, "away")
	repo := w.declare(t, "away", r)
	manifest := func(value string) string {
		return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: away}\nspec:\n  replicas: 1\n  selector: {matchLabels: {app: away}}\n" +
			"  template:\n    metadata:\n      labels: {app: away, value: " + value + "}\n    spec:\n      containers: [{name: c, image: registry.k8s.io/pause:3.10}]\n"
	}
	w.rolledOut(t, repo, r.commit(files{"app/fleet.yaml": "defaultNamespace: away\n", "app/deploy.yaml": manifest("one")}))

	agent := lab.AgentOf("staging")
	if err := w.lab.StopUnit(agent); err != nil {
		t.Fatal(err)
	}
	r.commit(files{"app/deploy.yaml": manifest("two")})
	eventually(t, "dev has the second commit", func() error { return w.deploymentLabel("dev", "away", "two") })
	w.offline(t, "staging")
	w.says(t, repo, "silent")
	last := r.commit(files{"app/deploy.yaml": manifest("three")})
	eventually(t, "dev has the third commit", func() error { return w.deploymentLabel("dev", "away", "three") })
	if err := w.lab.StartUnit(t.Context(), agent); err != nil {
		t.Fatal(err)
	}
	w.rolledOut(t, repo, last)
	if err := w.deploymentLabel("staging", "away", "three"); err != nil {
		t.Error(err)
	}
	if n := w.generation(t, "staging", "away"); n != 2 {
		t.Errorf("the Deployment on the cluster that was away has generation %d, want 2: it got a commit that it should have missed", n)
	}
}

func TestAgentRestartsWithoutHubAndGitServerAway(t *testing.T) {
	w := shared
	r := w.repository(t, "alone")
	repo := w.declare(t, "alone", r)
	w.rolledOut(t, repo, r.commit(files{
		"app/fleet.yaml": "defaultNamespace: alone\ncorrectDrift: {enabled: true}\n", "app/cm.yaml": configMapYAML("alone", "1"),
	}))
	for _, unit := range []string{lab.Git, lab.HubController, lab.Hub, lab.AgentOf("dev")} {
		if err := w.lab.StopUnit(unit); err != nil {
			t.Fatal(err)
		}
	}
	got, err := w.configMap("dev", "alone", "alone")
	if err != nil {
		t.Fatal(err)
	}
	got.Data["value"] = "edited"
	if err := w.spokes["dev"].Update(t.Context(), got); err != nil {
		t.Fatal(err)
	}
	for _, unit := range []string{lab.AgentOf("dev")} {
		if err := w.lab.StartUnit(t.Context(), unit); err != nil {
			t.Fatal(err)
		}
	}
	w.hasValue(t, "alone", "alone", "1", "dev")
	for _, unit := range []string{lab.Hub, lab.HubController, lab.Git} {
		if err := w.lab.StartUnit(t.Context(), unit); err != nil {
			t.Fatal(err)
		}
	}
	w.rolledOut(t, repo, r.commit(files{"app/cm.yaml": configMapYAML("alone", "2")}))
	w.hasValue(t, "alone", "alone", "2", all...)
}

func TestHubKilledAtAnyStepFinishesOnce(t *testing.T) {
	w := shared
	r := w.repository(t, "killed")
	repo := w.declare(t, "killed", r)
	w.rolledOut(t, repo, r.commit(files{"app/fleet.yaml": "defaultNamespace: killed\n", "app/cm.yaml": configMapYAML("killed", "0")}))
	var last string
	for i, wait := range []time.Duration{0, 300, 700, 1000, 1300, 1800} {
		value := string(rune('a' + i))
		last = r.commit(files{"app/cm.yaml": configMapYAML("killed", value)})
		// Not a wait for anything: it moves the kill through the steps.
		time.Sleep(wait * time.Millisecond)
		w.kill(t, lab.HubController)
		if err := w.lab.StartUnit(t.Context(), lab.HubController); err != nil {
			t.Fatal(err)
		}
	}
	w.rolledOut(t, repo, last)
	w.hasValue(t, "killed", "killed", "f", all...)
	before := versions(w.deployments(t, "killed"))
	w.kill(t, lab.HubController)
	if err := w.lab.StartUnit(t.Context(), lab.HubController); err != nil {
		t.Fatal(err)
	}
	w.rolledOut(t, repo, r.commit(files{"README.md": "words only\n"}))
	if after := versions(w.deployments(t, "killed")); !maps.Equal(before, after) {
		t.Errorf("a restarted hub wrote deployments: %v, before %v", after, before)
	}
}
