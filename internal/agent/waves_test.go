package agent_test

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// inWave puts an object into a wave.
func inWave(wave, object string) string {
	return strings.Replace(object, "metadata: {", fmt.Sprintf("metadata: {annotations: {flotilla.sh/wave: %q}, ", wave), 1)
}

// rollOut plays the controllers that make a Deployment ready, once it is there.
func (w *world) rollOut(namespace, name string) {
	w.t.Helper()
	w.eventually(func() error {
		live, err := w.object("apps/v1/Deployment", namespace, name)
		if err != nil {
			return err
		}
		return w.patchRollOut(live)
	})
}

// patchRollOut writes the status of a Deployment that is rolled out.
func (w *world) patchRollOut(live client.Object) error {
	status := fmt.Sprintf(`{"status":{"observedGeneration":%d,"replicas":2,"updatedReplicas":2,"readyReplicas":2,"availableReplicas":2,
		"conditions":[{"type":"Available","status":"True"},{"type":"Progressing","status":"True","reason":"NewReplicaSetAvailable"}]}}`, live.GetGeneration())
	return server.client.Status().Patch(w.ctx, live, client.RawPatch("application/merge-patch+json", []byte(status)), client.FieldOwner("kube-controller-manager"))
}

func TestWaves(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	w.deploy("web", []string{inWave("2", configMap(shop, "last", "1")), deployment(shop, "db"), inWave("-1", configMap(shop, "first", "1"))})
	w.start()
	w.until("web", says("not applied yet: waits for Deployment "+shop+"/db: "))
	w.untilValue(shop, "first", "1")
	w.absent("v1/ConfigMap", shop, "last")
	w.rollOut(shop, "db")
	w.until("web", ready)
	w.untilValue(shop, "last", "1")
	first, last := w.must("v1/ConfigMap", shop, "first").GetResourceVersion(), w.must("v1/ConfigMap", shop, "last").GetResourceVersion()
	if len(first) > len(last) || len(first) == len(last) && first > last {
		t.Errorf("the first wave was written at %s, the last at %s", first, last)
	}

	w.deploy("web", []string{inWave("x", configMap(shop, "last", "1"))})
	if message := deployedMessage(w.until("web", in(fleet.ErrApplied))); !strings.Contains(message, `flotilla.sh/wave is "x": it must be a whole number`) {
		t.Errorf("message: %s", message)
	}
}

// TestWavesWaitForJobsAndFirstWords begins the next wave when the Jobs of this
// one are complete, and controllers had the time to look at custom resources.
func TestWavesWaitForJobsAndFirstWords(t *testing.T) {
	w := newWorld(t)
	shop, group := w.ns("shop"), w.ns("shop")+".example.org"
	withStatus := strings.Replace(gadgets(group, "size: {type: integer}"), "    schema: ", "    subresources: {status: {}}\n    schema: ", 1)
	withStatus = strings.Replace(withStatus, "properties: {spec: ", "properties: {status: {type: object, x-kubernetes-preserve-unknown-fields: true}, spec: ", 1)
	w.apply(withStatus)
	patch := func(live client.Object, status string) {
		t.Helper()
		if err := server.client.Status().Patch(w.ctx, live, client.RawPatch("application/merge-patch+json", []byte(status))); err != nil {
			t.Fatal(err)
		}
	}
	later := func(name string) string { return inWave("1", configMap(shop, name, "1")) }
	w.deploy("job", []string{job(shop, "migrate", ""), later("after-job")})
	w.deploy("custom", []string{gadget(group, shop, "size: 1"), later("after-custom")})
	w.deploy("mute", []string{strings.Replace(gadget(group, shop, "size: 1"), "name: g", "name: mute", 1), later("after-mute")})
	w.start()

	w.until("job", says("migrate"))
	patch(w.must("batch/v1/Job", shop, "migrate"), `{"status":{"startTime":"2026-11-22T00:00:00Z"}}`)
	w.until("job", says("waits for Job "+shop+"/migrate: is not complete"))
	w.absent("v1/ConfigMap", shop, "after-job")
	patch(w.must("batch/v1/Job", shop, "migrate"), `{"status":{"succeeded":1,"completionTime":"2026-11-22T00:01:00Z",
		"conditions":[{"type":"SuccessCriteriaMet","status":"True"},{"type":"Complete","status":"True"}]}}`)
	w.until("job", ready)

	w.until("custom", says("waits for Gadget "+shop+"/g: has no status yet"))
	patch(w.must(group+"/v1/Gadget", shop, "g"), `{"status":{"conditions":[{"type":"Ready","status":"False","message":"begins"}]}}`)
	w.until("custom", says("waits for Gadget "+shop+"/g: begins"))
	w.absent("v1/ConfigMap", shop, "after-custom")
	patch(w.must(group+"/v1/Gadget", shop, "g"), `{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`)
	w.until("custom", ready)
	w.until("mute", ready)
}

// TestClaimThatWaitsForAPod is ready as long as its class makes no volume.
func TestClaimThatWaitsForAPod(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	class := fmt.Sprintf("apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: %s}\nprovisioner: example.org/none\nvolumeBindingMode: WaitForFirstConsumer\n", shop)
	claim := fmt.Sprintf("apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {namespace: %[1]s, name: data}\nspec: {storageClassName: %[1]s, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n", shop)
	w.deploy("web", []string{class, claim})
	w.start()
	w.until("web", ready)
	w.edit(w.must("v1/PersistentVolumeClaim", shop, "data"), "kube-scheduler", `{"metadata":{"annotations":{"volume.kubernetes.io/selected-node":"n1"}}}`)
	w.until("web", in(fleet.NotReady))
}

func helm(h fleet.HelmOptions) func(*fleet.BundleDeployment) {
	return func(bd *fleet.BundleDeployment) { bd.Spec.Options.Helm = &h }
}

func TestTimeoutWithoutAtomic(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	w.deploy("web", []string{deployment(shop, "web")}, helm(fleet.HelmOptions{TimeoutSeconds: 1}))
	w.start()
	bd := w.until("web", in(fleet.ErrApplied))
	if want := "not ready within 1s (helm.timeoutSeconds): Deployment " + shop + "/web: "; !strings.Contains(deployedMessage(bd), want) {
		t.Errorf("message %q does not say %q", deployedMessage(bd), want)
	}
	w.rollOut(shop, "web")
	w.until("web", ready)
}

func TestWaitForJobs(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	w.deploy("web", []string{job(shop, "once", "")}, helm(fleet.HelmOptions{TimeoutSeconds: 60, WaitForJobs: true}))
	w.start()
	w.until("web", says("waits for Job "+shop+"/once"))
	w.end(shop, "once", "Complete")
	w.until("web", ready)
}

func TestAtomic(t *testing.T) {
	for name, test := range map[string]struct {
		seconds int
		worse   func(shop string) []string
		fail    func(w *world, shop string)
		why     string
	}{
		"what is not ready in time": {
			seconds: 1,
			worse: func(shop string) []string {
				return []string{configMap(shop, "a", "2"), configMap(shop, "new", "1"), deployment(shop, "web")}
			},
			why: "not ready within 1s (helm.timeoutSeconds): Deployment NS/web",
		},
		"a hook that fails after the objects": {
			seconds: 300,
			worse: func(shop string) []string {
				return []string{configMap(shop, "a", "2"), configMap(shop, "new", "1"), job(shop, "check", "helm.sh/hook: post-upgrade")}
			},
			fail: func(w *world, shop string) { w.end(shop, "check", "Failed") },
			why:  "post-upgrade hook Job NS/check: failed",
		},
		"an object that is refused": {
			seconds: 300,
			worse: func(shop string) []string {
				return []string{configMap(shop, "a", "2"), configMap(shop, "new", "1"), strings.Replace(deployment(shop, "web"), "app: x}}", "app: z}}", 1)}
			},
			why: "Deployment NS/web: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			shop := w.ns("shop")
			atomic := helm(fleet.HelmOptions{Atomic: true, TimeoutSeconds: test.seconds})
			w.deploy("web", []string{configMap(shop, "a", "1"), configMap(shop, "old", "1")}, atomic)
			w.start()
			w.until("web", ready)
			good := w.status("web").Status.AppliedDeploymentID

			w.deploy("web", test.worse(shop), atomic)
			if test.fail != nil {
				test.fail(w, shop)
			}
			bd := w.until("web", func(bd *fleet.BundleDeployment) error {
				if !strings.Contains(deployedMessage(bd), "; went back to what ran before (helm.atomic)") {
					return fmt.Errorf("status: %+v", bd.Status.Conditions)
				}
				return nil
			})
			if want := strings.ReplaceAll(test.why, "NS", shop); !strings.Contains(deployedMessage(bd), want) {
				t.Errorf("message %q does not say %q", deployedMessage(bd), want)
			}
			if bd.Status.AppliedDeploymentID != good || bd.Status.Display.State != string(fleet.ErrApplied) {
				t.Errorf("status: %+v", bd.Status)
			}
			w.untilValue(shop, "a", "1")
			w.untilValue(shop, "old", "1")
			w.absent("v1/ConfigMap", shop, "new")

			// It rests there, with an agent that starts anew too, until something
			// new is wanted.
			w.stop()
			w.start()
			w.never("web", func(bd *fleet.BundleDeployment) bool { return in(fleet.ErrApplied)(bd) != nil })
			w.untilValue(shop, "a", "1")
			w.deploy("web", []string{configMap(shop, "a", "3")}, atomic)
			w.until("web", ready)
			w.untilValue(shop, "a", "3")
			w.absent("v1/ConfigMap", shop, "old")
		})
	}
}

// TestGoingBackHalfWay: what ran before counts for nothing once a release has
// begun. Wanted again half-way, it is applied again.
func TestGoingBackHalfWay(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	first := []string{configMap(shop, "a", "1"), configMap(shop, "old", "1")}
	w.deploy("web", first)
	w.start()
	w.until("web", ready)
	w.deploy("web", []string{configMap(shop, "a", "2"), job(shop, "check", "helm.sh/hook: post-upgrade")})
	w.until("web", says("post-upgrade hook Job "+shop+"/check"))
	w.untilValue(shop, "a", "2")
	w.absent("v1/ConfigMap", shop, "old")
	w.deploy("web", first)
	w.until("web", ready)
	w.untilValue(shop, "a", "1")
	w.untilValue(shop, "old", "1")
}
