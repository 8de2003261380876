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
		"a ConfigMap":                                 {"apiVersion: v1\nkind: ConfigMap", nil, Health{Ready: true}},
		"a Deployment rolls out":                      {"apiVersion: apps/v1\nkind: Deployment\nmetadata: {generation: 2}\nspec: {replicas: 2}\nstatus: {observedGeneration: 2, replicas: 2, updatedReplicas: 2, readyReplicas: 1, availableReplicas: 1}", nil, Health{Message: "Available: 1/2"}},
		"a Job failed":                                {"apiVersion: batch/v1\nkind: Job\nstatus: {startTime: x, conditions: [{type: Failed, status: 'True', reason: R, message: M}]}", nil, Health{Failed: true, Message: "Job Failed"}},
		"a resource not Ready":                        {"apiVersion: example.org/v1\nkind: Thing\nstatus: {conditions: [{type: Ready, status: 'False', reason: R, message: waits for me}]}", nil, Health{Message: "waits for me"}},
		"its condition ignored":                       {"apiVersion: example.org/v1\nkind: Thing\nstatus: {conditions: [{type: Ready, status: 'False', reason: R}]}", []map[string]string{{"type": "Ready", "status": "False"}}, Health{Ready: true}},
		"only all keys match":                         {"apiVersion: example.org/v1\nkind: Thing\nstatus: {conditions: [{type: Ready, status: 'False', reason: R}]}", []map[string]string{{"type": "Ready", "reason": "Other"}}, Health{}},
		"a StatefulSet that people update, no pod up": {"apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {generation: 1}\nspec: {replicas: 3, updateStrategy: {type: OnDelete}}\nstatus: {observedGeneration: 1, replicas: 3}", nil, Health{Message: "Ready: 0/3"}},
		"the same, all up":                            {"apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {generation: 1}\nspec: {replicas: 3, updateStrategy: {type: OnDelete}}\nstatus: {observedGeneration: 1, replicas: 3, readyReplicas: 3}", nil, Health{Ready: true}},
		"a DaemonSet that people update":              {"apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {generation: 2}\nspec: {updateStrategy: {type: OnDelete}}\nstatus: {observedGeneration: 2, desiredNumberScheduled: 3, currentNumberScheduled: 3, updatedNumberScheduled: 0, numberAvailable: 3, numberReady: 3}", nil, Health{Ready: true}},
		"the same, one down":                          {"apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {generation: 2}\nspec: {updateStrategy: {type: OnDelete}}\nstatus: {observedGeneration: 2, desiredNumberScheduled: 3, currentNumberScheduled: 3, updatedNumberScheduled: 3, numberAvailable: 2, numberReady: 2}", nil, Health{Message: "Ready: 2/3"}},
		"the same, not observed":                      {"apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {generation: 2}\nspec: {updateStrategy: {type: OnDelete}}\nstatus: {observedGeneration: 1, desiredNumberScheduled: 3, currentNumberScheduled: 3, numberAvailable: 3, numberReady: 3}", nil, Health{Message: "generation"}},
		"a Pod failed":                                {"apiVersion: v1\nkind: Pod\nstatus: {phase: Failed, message: evicted}", nil, Health{Failed: true, Message: "has failed: evicted"}},
		"an APIService without endpoints":             {"apiVersion: apiregistration.k8s.io/v1\nkind: APIService\nstatus: {conditions: [{type: Available, status: 'False', message: no endpoints}]}", nil, Health{Message: "is not available: no endpoints"}},
		"an APIService that answers":                  {"apiVersion: apiregistration.k8s.io/v1\nkind: APIService\nstatus: {conditions: [{type: Available, status: 'True'}]}", nil, Health{Ready: true}},
		"a load balancer without an address":          {"apiVersion: v1\nkind: Service\nspec: {type: LoadBalancer, clusterIP: 10.0.0.1}\nstatus: {loadBalancer: {}}", nil, Health{Ready: true}},
		"another Service":                             {"apiVersion: v1\nkind: Service\nspec: {type: ClusterIP, clusterIP: 10.0.0.1}\nstatus: {loadBalancer: {}}", nil, Health{Ready: true}},
		"a resource not Available":                    {"apiVersion: example.org/v1\nkind: Thing\nstatus: {conditions: [{type: Available, status: 'False', message: M}]}", nil, Health{Message: "is not available: M"}},
		"a degraded resource":                         {"apiVersion: example.org/v1\nkind: Thing\nstatus: {conditions: [{type: Available, status: 'True'}, {type: Degraded, status: 'True', message: M}]}", nil, Health{Message: "is degraded: M"}},
		"a degraded resource that is Ready":           {"apiVersion: example.org/v1\nkind: Thing\nstatus: {conditions: [{type: Ready, status: 'True'}, {type: Degraded, status: 'True', message: M}]}", nil, Health{Ready: true}},
		"its other condition ignored":                 {"apiVersion: example.org/v1\nkind: Thing\nstatus: {conditions: [{type: Degraded, status: 'True'}]}", []map[string]string{{"type": "Degraded"}}, Health{Ready: true}},
		"a resource without a status":                 {"apiVersion: example.org/v1\nkind: Thing", nil, Health{Ready: true}},
		"being deleted":                               {"apiVersion: v1\nkind: ConfigMap\nmetadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}", nil, Health{Message: "is being deleted"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := healthOf(&unstructured.Unstructured{Object: parsed(t, test.object)}, test.ignored)
			if got.Ready != test.want.Ready || got.Failed != test.want.Failed || !strings.Contains(got.Message, test.want.Message) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}
