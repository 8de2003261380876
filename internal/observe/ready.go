package observe

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-sh/flotilla/internal/apply"
)

// selectedNode is on a claim for which a volume is being made: a Pod that uses
// it has its place.
const selectedNode = "volume.kubernetes.io/selected-node"

// refined mends what the general rules say of kinds that they do not know well
// enough.
func refined(live *unstructured.Unstructured, h Health) Health {
	if h.Failed || live.GetDeletionTimestamp() != nil {
		return h
	}
	gvk := live.GroupVersionKind()
	switch gvk.Group + "/" + gvk.Kind {
	case "apps/StatefulSet":
		return onDeleteStateful(live, h)
	case "apps/DaemonSet":
		return onDeleteDaemon(live, h)
	case "/Pod":
		return podHealth(live, h)
	case "apiregistration.k8s.io/APIService":
		return apiService(live, h)
	}
	if h.Ready && !apply.BuiltIn(apply.RefOf(live)) {
		return customHealth(live, h)
	}
	return h
}

// onDeleteStateful waits for the Pods of a StatefulSet that people update: old
// ones do, but all of them must be up.
func onDeleteStateful(live *unstructured.Unstructured, h Health) Health {
	wanted, set, _ := unstructured.NestedInt64(live.Object, "spec", "replicas")
	if !set {
		wanted = 1
	}
	if ready := number(live, "readyReplicas"); h.Ready && updatedByPeople(live) && ready < wanted {
		return Health{Message: fmt.Sprintf("Ready: %d/%d", ready, wanted)}
	}
	return h
}

// onDeleteDaemon does not wait until people have updated the Pods of a
// DaemonSet.
func onDeleteDaemon(live *unstructured.Unstructured, h Health) Health {
	wanted, known, _ := unstructured.NestedInt64(live.Object, "status", "desiredNumberScheduled")
	if h.Ready || !updatedByPeople(live) || !known || number(live, "observedGeneration") != live.GetGeneration() {
		return h
	}
	for _, count := range []string{"currentNumberScheduled", "numberReady", "numberAvailable"} {
		if number(live, count) < wanted {
			return Health{Message: fmt.Sprintf("Ready: %d/%d", number(live, "numberReady"), wanted)}
		}
	}
	return Health{Ready: true}
}

func updatedByPeople(live *unstructured.Unstructured) bool {
	strategy, _, _ := unstructured.NestedString(live.Object, "spec", "updateStrategy", "type")
	return strategy == "OnDelete"
}

func number(live *unstructured.Unstructured, field string) int64 {
	n, _, _ := unstructured.NestedInt64(live.Object, "status", field)
	return n
}

func podHealth(live *unstructured.Unstructured, h Health) Health {
	if phase, _, _ := unstructured.NestedString(live.Object, "status", "phase"); phase != "Failed" {
		return h
	}
	message, _, _ := unstructured.NestedString(live.Object, "status", "message")
	if message == "" {
		message = "its containers have ended with an error"
	}
	return Health{Failed: true, Message: "has failed: " + message}
}

func apiService(live *unstructured.Unstructured, h Health) Health {
	state, message := conditionOf(live, "Available")
	if h.Ready && state != "True" {
		return Health{Message: "is not available" + prefixed(message)}
	}
	return h
}

// customHealth judges a custom resource without the usual condition by others
// that many have.
func customHealth(live *unstructured.Unstructured, h Health) Health {
	if state, _ := conditionOf(live, "Ready"); state != "" {
		return h
	}
	if state, message := conditionOf(live, "Available"); state == "False" {
		return Health{Message: "is not available" + prefixed(message)}
	}
	if state, message := conditionOf(live, "Degraded"); state == "True" {
		return Health{Message: "is degraded" + prefixed(message)}
	}
	return h
}

func prefixed(message string) string {
	if message == "" {
		return ""
	}
	return ": " + message
}

// conditionOf returns the status of a condition, empty where there is none, and
// what it says.
func conditionOf(live *unstructured.Unstructured, kind string) (state, message string) {
	conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		if condition["type"] == kind {
			state, _ = condition["status"].(string)
			message, _ = condition["message"].(string)
			return state, message
		}
	}
	return "", ""
}

// awaitsConsumer returns the storage class of a claim that may wait for a Pod:
// no volume is being made for it yet.
func awaitsConsumer(live *unstructured.Unstructured) string {
	gvk := live.GroupVersionKind()
	phase, _, _ := unstructured.NestedString(live.Object, "status", "phase")
	if gvk.Group != "" || gvk.Kind != "PersistentVolumeClaim" || phase != "Pending" || live.GetAnnotations()[selectedNode] != "" {
		return ""
	}
	class, _, _ := unstructured.NestedString(live.Object, "spec", "storageClassName")
	return class
}
