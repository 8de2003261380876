package hubtest_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/content"
	"github.com/flotilla-sh/flotilla/internal/content/kube"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// sent returns the objects that a bundle's deployment in a namespace names, as
// JSON, and the deployment.
func (w *whole) sent(space, bundle string) (string, *fleet.BundleDeployment) {
	w.Helper()
	d := &fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: bundle}}
	if !w.exists(d) || d.Spec.Content == nil {
		return "", nil
	}
	root := content.Ref{Digest: d.Spec.Content.Digest, Name: d.Spec.Content.Name}
	manifest, _, err := content.FetchObjects(w.ctx, kube.New(w.client).In(space), keeper{}, root)
	w.must(err)
	text, err := json.Marshal(manifest.Objects)
	w.must(err)
	return string(text), d
}

// TestDownstreamResources follows a Secret on its way to two clusters.
func TestDownstreamResources(t *testing.T) {
	w := newWhole(t)
	w.start()
	spaces := w.clusters(2)
	b := &fleet.Bundle{ObjectMeta: w.meta("app")}
	b.Spec.Resources = configMap("one")
	b.Spec.Targets = []fleet.BundleTarget{{ClusterName: "c00"}, {ClusterName: "c01"}}
	b.Spec.Targets[0].DownstreamResources = []fleet.DownstreamResource{{Kind: "Secret", Name: "pull"}, {Kind: "ConfigMap", Name: "board"}}
	b.Spec.Targets[0].DefaultNamespace = "shop"
	w.create(&corev1.ConfigMap{ObjectMeta: w.meta("board"), Data: map[string]string{"b": "c"}})
	w.create(b)

	rendered := func() string {
		w.must(w.client.Get(w.ctx, client.ObjectKeyFromObject(b), b))
		if c := fleet.FindCondition(b.Status.Conditions, fleet.ConditionRendered); c != nil && c.Status != metav1.ConditionTrue {
			return c.Reason + ": " + c.Message
		}
		return ""
	}
	missing := "there is no Secret " + w.namespace + "/pull on the hub"
	w.eventually("say what is missing", func() bool { return strings.Contains(rendered(), missing) })
	if said := rendered(); !strings.HasPrefix(said, "WaitingForResource: ") || strings.Contains(said, "c01") {
		t.Errorf("condition: %s", said)
	}
	w.eventually("deploy to the other cluster", func() bool { _, d := w.sent(spaces[1], "app"); return d != nil })
	if _, d := w.sent(spaces[0], "app"); d != nil {
		t.Error("deployed without what is missing")
	}

	const value = "hunter2hunter2"
	pull := &corev1.Secret{ObjectMeta: w.meta("pull"), StringData: map[string]string{"p": value}}
	w.create(pull)
	has := func(text string) func() bool {
		return func() bool {
			sent, _ := w.sent(spaces[0], "app")
			return strings.Contains(sent, text) && strings.Contains(sent, `"name":"board","namespace":"shop"`)
		}
	}
	w.eventually("copy", has(`{"p":"aHVudGVyMmh1bnRlcjI="}`))
	w.eventually("be content", func() bool { return rendered() == "" })
	if other, _ := w.sent(spaces[1], "app"); strings.Contains(other, "pull") {
		t.Error("the other cluster has it as well")
	}
	w.noValue(value, spaces[0], "app")

	pull.StringData = map[string]string{"p": "other"}
	w.must(w.client.Update(w.ctx, pull))
	w.eventually("follow a change", has(`{"p":"b3RoZXI="}`))

	// What has gone on the hub takes nothing off a cluster.
	_, before := w.sent(spaces[0], "app")
	w.must(w.client.Delete(w.ctx, pull))
	w.eventually("say what is missing", func() bool { return strings.Contains(rendered(), missing) })
	if _, after := w.sent(spaces[0], "app"); after == nil || after.Spec.DeploymentID != before.Spec.DeploymentID {
		t.Errorf("the deployment was changed: %v", after)
	}
}

// noValue looks for a value of a Secret in what is no Secret.
func (w *whole) noValue(value, space, bundle string) {
	w.Helper()
	_, d := w.sent(space, bundle)
	text, err := json.Marshal(d)
	w.must(err)
	encoded := base64.StdEncoding.EncodeToString([]byte(value))
	if strings.Contains(string(text), value) || strings.Contains(string(text), encoded) {
		w.Error("the deployment shows the value")
	}
	open := &openly{Getter: kube.New(w.client).In(space)}
	_, _, err = content.FetchObjects(w.ctx, open, keeper{}, content.Ref{Digest: d.Spec.Content.Digest, Name: d.Spec.Content.Name})
	if !errors.Is(err, errSecret) {
		w.Errorf("without Secrets of the cluster's namespace the copies are read: %v", err)
	}
}

// openly reads no Secrets.
type openly struct{ content.Getter }

var errSecret = errors.New("in a Secret")

func (o *openly) Get(ctx context.Context, ref content.Ref) (content.Parcel, error) {
	if ref.Secret {
		return content.Parcel{}, errSecret
	}
	return o.Getter.Get(ctx, ref)
}
