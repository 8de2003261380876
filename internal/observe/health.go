package observe

import (
	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Health is whether an object is ready.
type Health struct {
	// Ready is true where nothing is to be waited for.
	Ready bool
	// Failed is true where waiting will not help.
	Failed bool
	// Message says what is being waited for, or what failed.
	Message string
	// Running is true for a Job that is not complete: it is ready where nobody
	// waits for its end.
	Running bool
	// Silent is true for an object that its controller has not said anything
	// about yet.
	Silent bool
}

// healthOf judges a live object. Conditions that equal one of ignored, in all
// of its keys, are left out of account.
func healthOf(live *unstructured.Unstructured, ignored []map[string]string) Health {
	if len(ignored) > 0 {
		live = withoutConditions(live, ignored)
	}
	return refined(live, generalHealth(live))
}

// generalHealth judges a live object by rules that other tools have as well.
func generalHealth(live *unstructured.Unstructured) Health {
	result, err := status.Compute(live)
	if err != nil {
		return Health{Failed: true, Message: "its status cannot be read: " + err.Error()}
	}
	switch result.Status {
	case status.CurrentStatus:
		return Health{Ready: true}
	case status.FailedStatus:
		return Health{Failed: true, Message: result.Message}
	case status.TerminatingStatus:
		return Health{Message: "is being deleted"}
	default:
		return Health{Message: result.Message}
	}
}

// health judges a live object by the rules.
func (r Rules) health(live *unstructured.Unstructured) Health {
	h := healthOf(live, r.Conditions)
	if gvk := live.GroupVersionKind(); h.Ready && gvk.Group == "batch" && gvk.Kind == "Job" && !complete(live) {
		if r.Jobs {
			return Health{Message: "is not complete"}
		}
		h.Running = true
	}
	return h
}

func complete(job *unstructured.Unstructured) bool {
	state, _ := conditionOf(job, "Complete")
	return state == "True"
}

func withoutConditions(live *unstructured.Unstructured, ignored []map[string]string) *unstructured.Unstructured {
	conditions, found, err := unstructured.NestedSlice(live.Object, "status", "conditions")
	if !found || err != nil {
		return live
	}
	var kept []any
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		if !matchesAny(condition, ignored) {
			kept = append(kept, c)
		}
	}
	live = live.DeepCopy()
	if err := unstructured.SetNestedSlice(live.Object, kept, "status", "conditions"); err != nil {
		return live
	}
	return live
}

func matchesAny(condition map[string]any, ignored []map[string]string) bool {
	for _, want := range ignored {
		if len(want) > 0 && matches(condition, want) {
			return true
		}
	}
	return false
}

func matches(condition map[string]any, want map[string]string) bool {
	for key, value := range want {
		if got, _ := condition[key].(string); got != value {
			return false
		}
	}
	return true
}
