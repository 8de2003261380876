// Package events writes Kubernetes events on the agent's own cluster, so that
// its operator sees what happens there without the hub.
package events

import (
	"context"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	typedeventsv1 "k8s.io/client-go/kubernetes/typed/events/v1"
	toolsevents "k8s.io/client-go/tools/events"
)

const (
	// maxNote is what the API server takes as the text of an event.
	maxNote = 1000
	source  = "flotilla-agent"
)

// Recorder writes events about the agent's records of deployments: they are in
// its namespace, and there also when the hub is not.
type Recorder struct {
	broadcaster toolsevents.EventBroadcaster
	recorder    toolsevents.EventRecorder
	namespace   string
}

// New returns a recorder that writes through client into namespace.
func New(client typedeventsv1.EventsV1Interface, namespace string) *Recorder {
	b := toolsevents.NewBroadcaster(&toolsevents.EventSinkImpl{Interface: client})
	return &Recorder{broadcaster: b, recorder: b.NewRecorder(runtime.NewScheme(), source), namespace: namespace}
}

// Run sends what is recorded until ctx ends. Equal events are counted in one.
func (r *Recorder) Run(ctx context.Context) {
	if err := r.broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		logr.FromContextOrDiscard(ctx).Error(err, "events are not written")
		return
	}
	<-ctx.Done()
	r.broadcaster.Shutdown()
}

// Event records what happened to the deployment whose record is the Secret
// record. Normal events are no warnings.
func (r *Recorder) Event(record string, warning bool, reason, note string) {
	kind := corev1.EventTypeNormal
	if warning {
		kind = corev1.EventTypeWarning
	}
	if len(note) > maxNote {
		note = note[:maxNote]
	}
	about := &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: r.namespace, Name: record}
	r.recorder.Eventf(about, nil, kind, reason, "Deploy", "%s", note)
}
