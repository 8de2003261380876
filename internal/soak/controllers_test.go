package soak_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// controllers plays those of a cluster: Jobs end and Deployments become ready,
// after a while.
func (w *world) controllers(ctx context.Context, i int) {
	go w.follow(ctx, i, &batchv1.JobList{})
	go w.follow(ctx, i, &appsv1.DeploymentList{})
}

// follow watches objects of a kind and has them done what is to be done.
func (w *world) follow(ctx context.Context, i int, list client.ObjectList) {
	for ctx.Err() == nil {
		events, err := w.direct.spokes[i].Watch(ctx, list, client.InNamespace(w.model.names.shop))
		if err != nil {
			time.Sleep(w.pace.look)
			continue
		}
		for e := range events.ResultChan() {
			obj, ok := e.Object.(client.Object)
			if !ok || e.Type == watch.Deleted {
				continue
			}
			if status := due(obj); status != "" {
				time.AfterFunc(w.takes(i, obj), func() { w.finish(ctx, i, obj, status) })
			}
		}
		events.Stop()
	}
}

// takes is how long it takes to finish an object.
func (w *world) takes(i int, obj client.Object) time.Duration {
	h := fnv.New64a()
	fmt.Fprint(h, w.seed, i, obj.GetName(), obj.GetGeneration(), obj.GetAnnotations()[contentMark])
	return time.Duration(h.Sum64() % uint64(w.pace.work))
}

func (w *world) finish(ctx context.Context, i int, obj client.Object, status string) {
	if ctx.Err() != nil {
		return
	}
	patch := fmt.Sprintf(`{"metadata":{"uid":%q},"status":%s}`, obj.GetUID(), status)
	_ = w.direct.spokes[i].Status().Patch(ctx, obj, client.RawPatch("application/merge-patch+json", []byte(patch)), client.FieldOwner("kube-controller-manager"))
}

// due returns the status that an object comes to; nothing where it has it.
func due(obj client.Object) string {
	now := time.Now().UTC().Format(time.RFC3339)
	switch o := obj.(type) {
	case *batchv1.Job:
		if len(o.Status.Conditions) > 0 {
			return ""
		}
		if o.Annotations[failMark] != "" {
			return fmt.Sprintf(`{"startTime":%q,"failed":1,"conditions":[{"type":"FailureTarget","status":"True"},{"type":"Failed","status":"True","reason":"BackoffLimitExceeded"}]}`, now)
		}
		return fmt.Sprintf(`{"startTime":%q,"completionTime":%q,"succeeded":1,"conditions":[{"type":"SuccessCriteriaMet","status":"True"},{"type":"Complete","status":"True"}]}`, now, now)
	case *appsv1.Deployment:
		if o.Status.ObservedGeneration == o.Generation && o.Status.AvailableReplicas == 1 {
			return ""
		}
		return fmt.Sprintf(`{"observedGeneration":%d,"replicas":1,"updatedReplicas":1,"readyReplicas":1,"availableReplicas":1,"conditions":[`+
			`{"type":"Available","status":"%s"},{"type":"Progressing","status":"True","reason":"NewReplicaSetAvailable"}]}`, o.Generation, corev1.ConditionTrue)
	}
	return ""
}
