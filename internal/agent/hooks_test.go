package agent_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// job is a Job that is a hook with these annotations.
func job(namespace, name, annotations string) string {
	return fmt.Sprintf(`apiVersion: batch/v1
kind: Job
metadata: {namespace: %s, name: %s, annotations: {%s}}
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: app, image: "app:1"}]}
`, namespace, name, annotations)
}

// end plays the controller that ends a Job, once it is there.
func (w *world) end(namespace, name, condition string) *unstructured.Unstructured {
	w.t.Helper()
	var live *unstructured.Unstructured
	w.eventually(func() error {
		var err error
		live, err = w.object("batch/v1/Job", namespace, name)
		if err == nil && live.GetDeletionTimestamp() != nil {
			err = fmt.Errorf("%s is being deleted", name)
		}
		return err
	})
	if err := w.patchEnd(live, condition); err != nil {
		w.t.Fatal(err)
	}
	return live
}

// patchEnd writes the status of a Job that has ended.
func (w *world) patchEnd(live client.Object, condition string) error {
	now := time.Now().UTC().Format(time.RFC3339)
	before, more := "SuccessCriteriaMet", fmt.Sprintf(`"succeeded":1,"completionTime":%q,`, now)
	if condition == "Failed" {
		before, more = "FailureTarget", `"failed":1,`
	}
	status := fmt.Sprintf(`{"status":{"startTime":%q,%s"conditions":[{"type":%q,"status":"True"},{"type":%q,"status":"True","reason":"BackoffLimitExceeded","message":"it tried too often"}]}}`,
		now, more, before, condition)
	return server.client.Status().Patch(w.ctx, live, client.RawPatch("application/merge-patch+json", []byte(status)), client.FieldOwner("kube-controller-manager"))
}

func (w *world) absent(kind, namespace, name string) {
	w.t.Helper()
	w.eventually(func() error {
		if _, err := w.object(kind, namespace, name); !apierrors.IsNotFound(err) {
			return fmt.Errorf("%s %s/%s is there: %v", kind, namespace, name, err)
		}
		return nil
	})
}

// says is satisfied once the condition Ready tells all of these.
func says(parts ...string) func(*fleet.BundleDeployment) error {
	return func(bd *fleet.BundleDeployment) error {
		c := fleet.FindCondition(bd.Status.Conditions, fleet.ConditionReady)
		for _, part := range parts {
			if c == nil || !strings.Contains(c.Message, part) {
				return fmt.Errorf("Ready does not say %q: %+v", part, bd.Status.Conditions)
			}
		}
		return nil
	}
}

func TestHooksRunInTheirPhases(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	objects := func(value string) []string {
		return []string{
			configMap(shop, "a", value),
			job(shop, "first", `helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-weight: "-1", helm.sh/hook-delete-policy: "before-hook-creation,hook-succeeded"`),
			job(shop, "second", `helm.sh/hook: pre-install`),
			job(shop, "last", `helm.sh/hook: post-install`),
			job(shop, "never", `helm.sh/hook: test`),
		}
	}
	w.deploy("web", objects("1"))
	w.start()
	w.until("web", says("waits for pre-install hook Job "+shop+"/first: 0 of 1 completed"))
	w.absent("v1/ConfigMap", shop, "a")
	w.absent("batch/v1/Job", shop, "second")
	w.end(shop, "first", "Complete")
	w.until("web", says("pre-install hook Job "+shop+"/second"))
	w.absent("v1/ConfigMap", shop, "a")
	second := w.end(shop, "second", "Complete")
	w.until("web", says("post-install hook Job "+shop+"/last"))
	w.absent("batch/v1/Job", shop, "first")
	w.untilValue(shop, "a", "1")
	w.end(shop, "last", "Complete")
	bd := w.until("web", ready)
	if bd.Status.InventoryCount != 1 {
		t.Errorf("hooks are counted as objects: %+v", bd.Status)
	}
	w.absent("batch/v1/Job", shop, "never")

	w.deploy("web", objects("2"))
	w.until("web", says("waits for pre-upgrade hook Job "+shop+"/first"))
	w.untilValue(shop, "a", "1")
	w.end(shop, "first", "Complete")
	w.until("web", ready)
	w.untilValue(shop, "a", "2")
	if got := w.must("batch/v1/Job", shop, "second").GetUID(); got != second.GetUID() {
		t.Error("an install hook ran again at an upgrade")
	}
}

// TestHookThatGoesAtItsEnd lets a Job ask to be gone as soon as it has ended, and
// ends and deletes it while the agent is away: it is not run again.
func TestHookThatGoesAtItsEnd(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	goes := strings.Replace(job(shop, "migrate", `helm.sh/hook: pre-install`), "spec:\n", "spec:\n  ttlSecondsAfterFinished: 0\n", 1)
	w.deploy("web", []string{configMap(shop, "a", "1"), goes})
	w.start()
	w.until("web", says("waits for pre-install hook Job "+shop+"/migrate"))
	made := w.must("batch/v1/Job", shop, "migrate")
	if ttl, _, _ := unstructured.NestedInt64(made.Object, "spec", "ttlSecondsAfterFinished"); ttl < 3600 {
		t.Errorf("it stays %d s after its end", ttl)
	}
	w.stop()
	w.edit(made, "someone", `{"metadata":{"finalizers":["example.org/slow"]}}`)
	w.end(shop, "migrate", "Complete")
	if err := server.client.Delete(w.ctx, made); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.until("web", ready)
	if got := w.must("batch/v1/Job", shop, "migrate"); got.GetUID() != made.GetUID() {
		t.Error("it was run again")
	}
	w.edit(made, "someone", `{"metadata":{"finalizers":null}}`)
}

func TestHookThatFails(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	w.deploy("web", []string{configMap(shop, "a", "1")})
	w.start()
	w.until("web", ready)
	migrate := job(shop, "migrate", `helm.sh/hook: pre-upgrade`)
	w.deploy("web", []string{configMap(shop, "a", "2"), migrate})
	w.end(shop, "migrate", "Failed")
	bd := w.until("web", in(fleet.ErrApplied))
	if want := "pre-upgrade hook Job " + shop + "/migrate: failed: BackoffLimitExceeded: it tried too often"; !strings.Contains(deployedMessage(bd), want) {
		t.Errorf("message %q does not say %q", deployedMessage(bd), want)
	}
	w.untilValue(shop, "a", "1")

	// It is not run again by itself, nor by an agent that starts anew.
	failed := w.must("batch/v1/Job", shop, "migrate").GetUID()
	w.stop()
	w.start()
	w.never("web", func(bd *fleet.BundleDeployment) bool { return in(fleet.ErrApplied)(bd) != nil })
	if got := w.must("batch/v1/Job", shop, "migrate").GetUID(); got != failed {
		t.Error("the hook ran again")
	}

	w.deploy("web", []string{configMap(shop, "a", "3"), migrate})
	w.eventually(func() error {
		live, err := w.object("batch/v1/Job", shop, "migrate")
		if err == nil && live.GetUID() == failed {
			err = fmt.Errorf("the new version has not run its hook")
		}
		return err
	})
	w.end(shop, "migrate", "Complete")
	w.until("web", ready)
	w.untilValue(shop, "a", "3")
}

// TestHooksOfOneWeight runs three hooks of one weight: one after the other, by
// name, up to the first that fails. The delete policies of those that have
// succeeded before it count, and those after it are not made, as with Helm.
func TestHooksOfOneWeight(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	objects := func(value string) []string {
		return []string{
			configMap(shop, "a", value),
			job(shop, "ha", `helm.sh/hook: pre-upgrade, helm.sh/hook-delete-policy: hook-succeeded`),
			job(shop, "hb", `helm.sh/hook: pre-upgrade, helm.sh/hook-delete-policy: "before-hook-creation,hook-failed"`),
			job(shop, "hc", `helm.sh/hook: pre-upgrade`),
			job(shop, "p", `helm.sh/hook: pre-delete`),
			job(shop, "q", `helm.sh/hook: pre-delete`),
		}
	}
	w.deploy("web", objects("1"))
	w.start()
	w.until("web", ready)
	fails := func(name string) {
		t.Helper()
		bd := w.until("web", in(fleet.ErrApplied))
		if want := "pre-upgrade hook Job " + shop + "/" + name + ": failed"; !strings.Contains(deployedMessage(bd), want) {
			t.Errorf("message %q does not say %q", deployedMessage(bd), want)
		}
		w.untilValue(shop, "a", "1")
	}

	w.deploy("web", objects("2"))
	w.until("web", says("pre-upgrade hook Job "+shop+"/ha"))
	w.absent("batch/v1/Job", shop, "hb")
	w.end(shop, "ha", "Complete")
	w.until("web", says("pre-upgrade hook Job "+shop+"/hb"))
	w.end(shop, "hb", "Failed")
	fails("hb")
	for _, name := range []string{"ha", "hb", "hc"} {
		w.absent("batch/v1/Job", shop, name)
	}

	// All of them run again for the next content, those that had succeeded too.
	w.deploy("web", objects("3"))
	w.until("web", says("pre-upgrade hook Job "+shop+"/ha"))
	w.end(shop, "ha", "Complete")
	second := w.end(shop, "hb", "Complete").GetUID()
	third := w.end(shop, "hc", "Failed").GetUID()
	fails("hc")
	w.absent("batch/v1/Job", shop, "ha")
	if b, c := w.must("batch/v1/Job", shop, "hb"), w.must("batch/v1/Job", shop, "hc"); b.GetUID() != second || c.GetUID() != third {
		t.Error("a hook was made anew after one had failed")
	}

	w.deploy("web", objects("4"))
	w.end(shop, "ha", "Complete")
	w.endAnew(shop, "hb", second)
	w.endAnew(shop, "hc", third)
	w.until("web", ready)
	w.untilValue(shop, "a", "4")
	w.absent("batch/v1/Job", shop, "ha")

	// A removal runs all of them again, as nothing else could bring it on.
	w.deploy("web", nil, func(bd *fleet.BundleDeployment) { bd.Spec.Removal = &fleet.Removal{Reason: "test"} })
	first := w.end(shop, "p", "Complete").GetUID()
	failed := w.end(shop, "q", "Failed").GetUID()
	w.until("web", func(bd *fleet.BundleDeployment) error {
		if s := bd.Status.RemovalState; s == nil || !strings.Contains(s.Message, "pre-delete hook Job "+shop+"/q: failed") {
			return fmt.Errorf("removal: %+v", s)
		}
		return nil
	})
	w.untilValue(shop, "a", "4")
	w.endAnew(shop, "p", first)
	w.endAnew(shop, "q", failed)
	w.until("web", gone)
	for _, name := range []string{"p", "q", "hb", "hc"} {
		w.absent("batch/v1/Job", shop, name)
	}
}

// endAnew completes a Job once it is another one than before.
func (w *world) endAnew(namespace, name string, before types.UID) {
	w.t.Helper()
	w.eventually(func() error {
		live, err := w.object("batch/v1/Job", namespace, name)
		if err == nil && live.GetUID() == before {
			err = fmt.Errorf("%s is not made anew", name)
		}
		return err
	})
	w.end(namespace, name, "Complete")
}

func TestHookThatTakesTooLong(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	w.deploy("web", []string{configMap(shop, "a", "1"), job(shop, "slow", `helm.sh/hook: pre-install, helm.sh/hook-delete-policy: hook-failed`)},
		func(bd *fleet.BundleDeployment) { bd.Spec.Options.Helm = &fleet.HelmOptions{TimeoutSeconds: 1} })
	w.start()
	bd := w.until("web", in(fleet.ErrApplied))
	if message := deployedMessage(bd); !strings.Contains(message, "/slow: 0 of 1 completed; it was given 1s (helm.timeoutSeconds)") {
		t.Errorf("message: %s", message)
	}
	w.absent("batch/v1/Job", shop, "slow")
}

func TestDeleteHooks(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	w.deploy("web", []string{
		configMap(shop, "a", "1"),
		job(shop, "before", `helm.sh/hook: pre-delete`),
		job(shop, "after", `helm.sh/hook: post-delete, helm.sh/hook-delete-policy: hook-succeeded`),
	})
	w.start()
	w.until("web", ready)
	w.deploy("web", nil, func(bd *fleet.BundleDeployment) { bd.Spec.Removal = &fleet.Removal{Reason: "test"} })
	first := w.end(shop, "before", "Failed").GetUID()
	w.untilValue(shop, "a", "1")
	w.until("web", func(bd *fleet.BundleDeployment) error {
		if s := bd.Status.RemovalState; s == nil || !strings.Contains(s.Message, "pre-delete hook Job "+shop+"/before: failed") {
			return fmt.Errorf("removal: %+v", s)
		}
		return nil
	})
	w.eventually(func() error {
		live, err := w.object("batch/v1/Job", shop, "before")
		if err == nil && live.GetUID() == first {
			err = fmt.Errorf("it is not run again")
		}
		return err
	})
	w.end(shop, "before", "Complete")
	w.end(shop, "after", "Complete")
	w.until("web", gone)
	w.absent("v1/ConfigMap", shop, "a")
	w.absent("batch/v1/Job", shop, "before")
	w.absent("batch/v1/Job", shop, "after")
}
