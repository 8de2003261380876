package memapi_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/flotilla-sh/flotilla/internal/memapi"
)

// What a client sees of this server, in the words that client-go has for it.

func clientOf(t *testing.T, s *memapi.Server) *kubernetes.Clientset {
	t.Helper()
	c, err := kubernetes.NewForConfig(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string]string{"key": value}}
}

func TestWrites(t *testing.T) {
	ctx := t.Context()
	c := clientOf(t, memapi.New(nil))
	maps := c.CoreV1().ConfigMaps("default")
	made, err := maps.Create(ctx, configMap("a", "1"), metav1.CreateOptions{})
	if err != nil || made.UID == "" || made.ResourceVersion == "" || made.CreationTimestamp.IsZero() {
		t.Fatalf("created: %+v, %v", made, err)
	}
	patch := func(body string) error {
		_, err := maps.Patch(ctx, "a", types.MergePatchType, []byte(body), metav1.PatchOptions{})
		return err
	}
	stale := made.DeepCopy()
	for name, step := range map[string]struct {
		do   func() error
		want func(error) bool
	}{
		"create what exists": {func() error { _, err := maps.Create(ctx, configMap("a", "1"), metav1.CreateOptions{}); return err }, apierrors.IsAlreadyExists},
		"create in no namespace": {func() error {
			_, err := c.CoreV1().ConfigMaps("x").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
			return err
		}, apierrors.IsNotFound},
		"read what does not exist": {func() error { _, err := maps.Get(ctx, "b", metav1.GetOptions{}); return err }, apierrors.IsNotFound},
		"patch an earlier version": {func() error { return patch(`{"metadata":{"resourceVersion":"1"},"data":{"key":"9"}}`) }, apierrors.IsConflict},
		"patch another object":     {func() error { return patch(`{"metadata":{"uid":"x"}}`) }, apierrors.IsInvalid},
		"delete another object": {func() error {
			return maps.Delete(ctx, "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr.To(types.UID("x"))}})
		}, apierrors.IsConflict},
		"a try that is not written": {func() error {
			_, err := maps.Create(ctx, configMap("c", "1"), metav1.CreateOptions{DryRun: []string{"All"}})
			return err
		}, func(err error) bool { return err == nil }},
	} {
		if err := step.do(); !step.want(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := patch(`{"data":{"key":"1"}}`); err != nil {
		t.Fatal(err)
	}
	if same, err := maps.Get(ctx, "a", metav1.GetOptions{}); err != nil || same.ResourceVersion != made.ResourceVersion {
		t.Errorf("a patch that changes nothing: %v, %v", same, err)
	}
	if err := patch(`{"data":{"key":"2"}}`); err != nil {
		t.Fatal(err)
	}
	if _, err := maps.Update(ctx, stale, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("update of an earlier version: %v", err)
	}
	if list, err := maps.List(ctx, metav1.ListOptions{}); err != nil || len(list.Items) != 1 {
		t.Errorf("list: %v, %v", list, err)
	}
}

func TestApplyTakesAwayWhatItAppliedBefore(t *testing.T) {
	ctx := t.Context()
	maps := clientOf(t, memapi.New(nil)).CoreV1().ConfigMaps("default")
	apply := func(manager, data string) *corev1.ConfigMap {
		t.Helper()
		body := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":` + data + `}`
		got, err := maps.Patch(ctx, "a", types.ApplyPatchType, []byte(body), metav1.PatchOptions{FieldManager: manager, Force: ptr.To(true)})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	first := apply("one", `{"x":"1","y":"1"}`)
	if again := apply("one", `{"x":"1","y":"1"}`); again.ResourceVersion != first.ResourceVersion {
		t.Error("the same again was written")
	}
	apply("two", `{"z":"1"}`)
	got := apply("one", `{"x":"2"}`)
	if len(got.Data) != 2 || got.Data["x"] != "2" || got.Data["z"] != "1" || len(got.ManagedFields) != 2 {
		t.Errorf("got %v, %v", got.Data, got.ManagedFields)
	}
	if _, err := maps.Patch(ctx, "a", types.MergePatchType, []byte(`{"data":{"x":"3"}}`), metav1.PatchOptions{FieldManager: "person"}); err != nil {
		t.Fatal(err)
	}
	if got, err := maps.Get(ctx, "a", metav1.GetOptions{}); err != nil || len(got.ManagedFields) != 3 {
		t.Errorf("nobody knows who edited it: %v, %v", got, err)
	}
}

func TestDeletionWaitsForFinalizersAndEmptiesNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		core := clientOf(t, memapi.New(nil)).CoreV1()
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		_, err := core.Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, metav1.CreateOptions{})
		must(err)
		maps := core.ConfigMaps("n")
		for _, name := range []string{"held", "free"} {
			cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
			if name == "held" {
				cm.Finalizers = []string{"example.org/hold"}
			}
			_, err := maps.Create(ctx, cm, metav1.CreateOptions{})
			must(err)
		}
		must(core.Namespaces().Delete(ctx, "n", metav1.DeleteOptions{}))
		time.Sleep(time.Second)
		list, err := maps.List(ctx, metav1.ListOptions{})
		must(err)
		if len(list.Items) != 1 || list.Items[0].DeletionTimestamp == nil {
			t.Errorf("left: %+v", list.Items)
		}
		for _, name := range []string{"new", "held"} {
			cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
			_, err := maps.Create(ctx, cm, metav1.CreateOptions{})
			if !apierrors.IsForbidden(err) || !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
				t.Errorf("create of %s while the namespace goes: %v", name, err)
			}
		}
		_, err = maps.Patch(ctx, "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		must(err)
		if _, err := core.Namespaces().Get(ctx, "n", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("the empty namespace: %v", err)
		}
	})
}

func TestWatch(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	maps := clientOf(t, memapi.New(nil)).CoreV1().ConfigMaps("default")
	write := func(name, label string) string {
		t.Helper()
		cm := configMap(name, "1")
		cm.Labels = map[string]string{"l": label}
		got, err := maps.Create(ctx, cm, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return got.ResourceVersion
	}
	since := write("before", "yes")
	w, err := maps.Watch(ctx, metav1.ListOptions{ResourceVersion: since, LabelSelector: "l=yes"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	write("other", "no")
	write("a", "yes")
	for _, value := range []string{"yes", "no"} {
		patch := []byte(`{"metadata":{"labels":{"l":"` + value + `"}},"data":{"key":"2"}}`)
		if _, err := maps.Patch(ctx, "a", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"ADDED", "MODIFIED", "DELETED"} {
		event, ok := <-w.ResultChan()
		if !ok || string(event.Type) != want || event.Object.(*corev1.ConfigMap).Name != "a" {
			t.Errorf("got %+v, want %s", event, want)
		}
	}
	if err := ctx.Err(); errors.Is(err, context.DeadlineExceeded) {
		t.Error("it took too long")
	}
}
