package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// maxWords bounds what is repeated of a container's last words.
const maxWords = 300

// ending is how far a Job or Pod has come.
type ending int

const (
	running ending = iota
	succeeded
	failed
)

// endOf tells how far a live Job or Pod has come, and says so for people.
func endOf(live *unstructured.Unstructured) (ending, string) {
	if live.GetKind() == "Pod" {
		return endOfPod(live)
	}
	conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		if condition["status"] != "True" {
			continue
		}
		switch condition["type"] {
		case "Complete":
			return succeeded, ""
		case "Failed":
			return failed, "failed: " + said(condition)
		}
	}
	if suspended, _, _ := unstructured.NestedBool(live.Object, "spec", "suspend"); suspended {
		return running, "is suspended"
	}
	wanted, found, _ := unstructured.NestedInt64(live.Object, "spec", "completions")
	if !found {
		wanted = 1
	}
	done, _, _ := unstructured.NestedInt64(live.Object, "status", "succeeded")
	text := fmt.Sprintf("%d of %d completed", done, wanted)
	if bad, _, _ := unstructured.NestedInt64(live.Object, "status", "failed"); bad > 0 {
		text += fmt.Sprintf(", %d failed", bad)
	}
	return running, text
}

func endOfPod(live *unstructured.Unstructured) (ending, string) {
	status, _, _ := unstructured.NestedMap(live.Object, "status")
	switch phase, _ := status["phase"].(string); phase {
	case "Succeeded":
		return succeeded, ""
	case "Failed":
		return failed, "failed" + colon(said(status))
	case "":
		return running, "was not taken up yet"
	default:
		return running, "is " + phase
	}
}

// said joins the reason and the message of a status.
func said(of map[string]any) string {
	reason, _ := of["reason"].(string)
	message, _ := of["message"].(string)
	if reason != "" && message != "" {
		return reason + ": " + message
	}
	return reason + message
}

func colon(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

// lastWords returns what the containers of a failed Job or Pod said at their
// end, or nothing where that cannot be found out.
func (c *Client) lastWords(ctx context.Context, live *unstructured.Unstructured) string {
	pods := []unstructured.Unstructured{*live}
	if live.GetKind() == "Job" {
		list, err := c.Objects.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace(live.GetNamespace()).
			List(ctx, metav1.ListOptions{LabelSelector: "batch.kubernetes.io/controller-uid=" + string(live.GetUID())})
		if err != nil {
			return ""
		}
		pods = list.Items
	}
	slices.SortStableFunc(pods, func(a, b unstructured.Unstructured) int {
		return b.GetCreationTimestamp().Compare(a.GetCreationTimestamp().Time)
	})
	for i := range pods {
		if words := wordsOf(&pods[i]); words != "" {
			return "; " + words
		}
	}
	return ""
}

// wordsOf returns how the first failed container of a pod ended.
func wordsOf(pod *unstructured.Unstructured) string {
	for _, list := range []string{"initContainerStatuses", "containerStatuses"} {
		statuses, _, _ := unstructured.NestedSlice(pod.Object, "status", list)
		for _, s := range statuses {
			status, _ := s.(map[string]any)
			if words := containerWords(status); words != "" {
				return words
			}
		}
	}
	return ""
}

func containerWords(status map[string]any) string {
	end, found, _ := unstructured.NestedMap(status, "state", "terminated")
	if !found {
		end, found, _ = unstructured.NestedMap(status, "lastState", "terminated")
	}
	code, _, _ := unstructured.NestedInt64(end, "exitCode")
	if !found || code == 0 {
		return ""
	}
	name, _ := status["name"].(string)
	words := strings.TrimSpace(said(end))
	if len(words) > maxWords {
		words = strings.ToValidUTF8(words[:maxWords], "") + "…"
	}
	return fmt.Sprintf("container %s ended with %d", name, code) + colon(words)
}
