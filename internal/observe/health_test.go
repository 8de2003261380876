package observe

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestHealthOf(t *testing.T) {
	for name, test := range map[string]struct {
		object  string
		ignored []map[string]string
		want    Health
	}{
		"a ConfigMap":            {"apiVersion: v1\nkind: ConfigMap", nil, Health{Ready: true}},
		"a Deployment rolls out": {"apiVersion: apps/v1\nkind: Deployment\nmetadata: {generation: 2}\nspec: {replicas: 2}\nstatus: {observedGeneration: 2, replicas: 2, updatedReplicas: 2, readyReplicas: 1, availableReplicas: 1}", nil, Health{Message: "Available: 1/2"}},
		"a Job failed":           {"apiVersion: batch/v1\nkind: Job\nstatus: {startTime: x, conditions: [{type: Failed, status: 'True', reason: R, message: M}]}", nil, Health{Failed: true, Message: "Job Failed"}},
		"a resource not Ready":   {"apiVersion: example.org/v1\nkind: Thing\nstatus: {conditions: [{type: Ready, status: 'False', reason: R, message: waits for me}]}", nil, Health{Message: "waits for me"}},
		"its condition ignored":  {"apiVersion: example.org/v1\nkind: Thing\nstatus: {conditions: [{type: Ready, status: 'False', reason: R}]}", []map[string]string{{"type": "Ready", "status": "False"}}, Health{Ready: true}},
		"only all keys match":    {"apiVersion: example.org/v1\nkind: Thing\nstatus: {conditions: [{type: Ready, status: 'False', reason: R}]}", []map[string]string{{"type": "Ready", "reason": "Other"}}, Health{}},
		"being deleted":          {"apiVersion: v1\nkind: ConfigMap\nmetadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}", nil, Health{Message: "is being deleted"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := healthOf(&unstructured.Unstructured{Object: parsed(t, test.object)}, test.ignored)
			if got.Ready != test.want.Ready || got.Failed != test.want.Failed || !strings.Contains(got.Message, test.want.Message) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}
