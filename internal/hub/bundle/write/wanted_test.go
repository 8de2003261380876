package write

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

func TestChangesThatAskForALook(t *testing.T) {
	written := bundleOf(helm(nil))
	written.Labels = map[string]string{fleet.RepoLabel: "repo", fleet.CommitLabel: "one"}
	for name, tt := range map[string]struct {
		change func(*fleet.Bundle)
		want   bool
	}{
		"as it was written":    {func(*fleet.Bundle) {}, false},
		"of another commit":    {func(b *fleet.Bundle) { b.Labels[fleet.CommitLabel] = "two" }, false},
		"with a finalizer":     {func(b *fleet.Bundle) { b.Finalizers = []string{fleet.Finalizer} }, false},
		"another spec":         {func(b *fleet.Bundle) { b.Spec.Paused = true }, true},
		"another label":        {func(b *fleet.Bundle) { b.Labels["a"] = "b" }, true},
		"another bundle":       {func(b *fleet.Bundle) { b.Name = "b" }, true},
		"going":                {func(b *fleet.Bundle) { b.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, false},
		"going, and changed":   {func(b *fleet.Bundle) { b.Spec.Paused, b.DeletionTimestamp = true, &metav1.Time{Time: time.Unix(1, 0)} }, false},
		"in another namespace": {func(b *fleet.Bundle) { b.Namespace = "n" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := &Writer{}
			w.wanted.note(written)
			now := written.DeepCopy()
			now.Generation = 2
			tt.change(now)
			if got := w.Changes().Create(event.CreateEvent{Object: now}); got != tt.want {
				t.Errorf("created: %t, want %t", got, tt.want)
			}
			if got := w.Changes().Update(event.UpdateEvent{ObjectOld: written, ObjectNew: now}); got != tt.want {
				t.Errorf("updated: %t, want %t", got, tt.want)
			}
			before := now.DeepCopy()
			if w.Changes().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: now}) {
				t.Error("a change of the status alone asks for a look")
			}
		})
	}
}

func TestWhatIsGoneAsksForALook(t *testing.T) {
	w, b := &Writer{}, bundleOf(helm(nil))
	w.wanted.note(b)
	if !w.Changes().Delete(event.DeleteEvent{Object: b}) {
		t.Error("a Bundle that is gone has to be made anew")
	}
	if !w.Changes().Create(event.CreateEvent{Object: b}) {
		t.Error("it is back, and nobody here has written it")
	}
}
