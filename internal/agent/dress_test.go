package agent_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/flotilla-sh/flotilla/internal/apireq"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// dressing sets labels, given as key and value in turn, on a bundle's namespace.
func dressing(namespace string, labels ...string) func(*fleet.BundleDeployment) {
	return func(bd *fleet.BundleDeployment) {
		bd.Spec.Options.DefaultNamespace, bd.Spec.Options.NamespaceLabels = namespace, nil
		for i := 0; i < len(labels); i += 2 {
			if bd.Spec.Options.NamespaceLabels == nil {
				bd.Spec.Options.NamespaceLabels = map[string]string{}
			}
			bd.Spec.Options.NamespaceLabels[labels[i]] = labels[i+1]
		}
	}
}

// wears compares the labels of a namespace.
func (w *world) wears(namespace string, want map[string]string) {
	w.t.Helper()
	w.eventually(func() error {
		ns, err := w.object("v1/Namespace", "", namespace)
		if err != nil {
			return err
		}
		labels := maps.Clone(ns.GetLabels())
		delete(labels, "kubernetes.io/metadata.name")
		if !maps.Equal(labels, want) {
			return fmt.Errorf("labels are %v, want %v", labels, want)
		}
		return nil
	})
}

func namespaceWrites(r apireq.Request) bool { return writes(r) && r.Resource == "namespaces" }

func TestLabelsOfTheNamespace(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	w.apply(fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s, labels: {theirs: x, pod-security.kubernetes.io/enforce: restricted}}\n", shop))
	theirs := map[string]string{"theirs": "x", "pod-security.kubernetes.io/enforce": "restricted"}
	with := func(more ...string) map[string]string {
		out := maps.Clone(theirs)
		for i := 0; i < len(more); i += 2 {
			out[more[i]] = more[i+1]
		}
		return out
	}
	objects := []string{configMap(shop, "a", "1")}
	w.deploy("web", objects, dressing(shop, "team", "web", "theirs", "x", "pod-security.kubernetes.io/enforce", "privileged"), func(bd *fleet.BundleDeployment) {
		bd.Spec.Options.NamespaceAnnotations = map[string]string{"note": "hello"}
	})
	w.start()
	w.until("web", ready)
	w.wears(shop, with("team", "web"))
	if got := w.must("v1/Namespace", "", shop).GetAnnotations()["note"]; got != "hello" {
		t.Errorf("annotation note: %q", got)
	}

	// Another commit does not write them again, nor does another start.
	w.stop()
	w.spoke.Reset()
	w.start()
	w.deploy("web", []string{configMap(shop, "a", "2")})
	w.until("web", ready)
	w.untilValue(shop, "a", "2")
	if seen := w.spoke.Seen(namespaceWrites); len(seen) > 1 { // the agent's own
		t.Errorf("wrote to namespaces: %v", seen)
	}

	// What another bundle has set to something else is a conflict that stops
	// nothing else.
	w.deploy("api", []string{configMap(shop, "b", "1")}, dressing(shop, "team", "api"))
	bd := w.until("api", in(fleet.ErrApplied))
	if message := deployedMessage(bd); !strings.Contains(message, "Namespace "+shop+`: its label team was set to "web" by flotilla-ns-`) {
		t.Errorf("message: %s", message)
	}
	w.untilValue(shop, "b", "1")
	w.deploy("api", nil, func(bd *fleet.BundleDeployment) {
		bd.Spec.Options.Helm = &fleet.HelmOptions{TakeOwnership: true}
		bd.Spec.DeploymentID += "t"
	})
	w.until("api", ready)
	w.wears(shop, with("team", "api"))

	// What is wanted no more is taken off, with the bundle too.
	w.deploy("api", []string{configMap(shop, "b", "2")}, dressing(shop, "stage", "prod"))
	w.until("api", ready)
	w.wears(shop, with("stage", "prod"))
	w.deploy("web", []string{configMap(shop, "a", "3")}, dressing(shop), func(bd *fleet.BundleDeployment) {
		bd.Spec.Options.NamespaceAnnotations = nil
	})
	w.until("web", ready)
	if got := w.must("v1/Namespace", "", shop).GetAnnotations()["note"]; got != "" {
		t.Errorf("annotation note is still %q", got)
	}
	w.deploy("api", nil, marked)
	w.until("api", gone)
	w.wears(shop, theirs)
}

func TestLabelsOfANewNamespace(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	w.deploy("web", []string{configMap(shop, "a", "1")}, dressing(shop, "team", "web"), func(bd *fleet.BundleDeployment) {
		bd.Spec.CorrectDrift = &fleet.CorrectDrift{Enabled: true}
	})
	w.start()
	w.until("web", ready)
	w.wears(shop, map[string]string{"team": "web"})

	// One that was deleted and made anew is dressed anew.
	if err := server.client.Delete(w.ctx, w.must("v1/Namespace", "", shop)); err != nil {
		t.Fatal(err)
	}
	if err := server.client.Delete(w.ctx, w.must("v1/ConfigMap", shop, "a")); err != nil {
		t.Fatal(err)
	}
	w.finalizeNamespace(shop)
	w.untilValue(shop, "a", "1")
	w.until("web", ready)
	w.wears(shop, map[string]string{"team": "web"})

	// A namespace that was deleted is not made again to take something off it.
	w.deploy("web", nil, marked)
	w.until("web", gone)
	w.wears(shop, nil)
}

// TestEditedLabelsOfTheNamespace edits by hand what a bundle has set, and what
// it has not.
func TestEditedLabelsOfTheNamespace(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	correct := func(enabled bool) func(*fleet.BundleDeployment) {
		return func(bd *fleet.BundleDeployment) { bd.Spec.CorrectDrift = &fleet.CorrectDrift{Enabled: enabled} }
	}
	w.deploy("web", []string{configMap(shop, "a", "1")}, dressing(shop, "team", "web", "stage", "prod"))
	w.start()
	w.until("web", ready)
	edit := func(labels string) {
		w.edit(w.must("v1/Namespace", "", shop), "kubectl-label", `{"metadata":{"labels":{`+labels+`}}}`)
	}
	edit(`"theirs":"x","team":"api","stage":null`)
	bd := w.until("web", modifiedOnce)
	if m := bd.Status.ModifiedStatus[0]; m.Kind != "Namespace" || m.Name != shop || len(m.Fields) != 2 || m.Fields[1].Path != "metadata.labels.team" ||
		m.Fields[1].Live != `"api"` || len(m.By) != 1 || m.By[0].Manager != "kubectl-label" {
		t.Errorf("modified: %+v", m)
	}

	// An agent that starts anew finds it too, and puts it back where asked.
	w.stop()
	w.start()
	w.until("web", modifiedOnce)
	w.deploy("web", nil, correct(true))
	w.wears(shop, map[string]string{"team": "web", "stage": "prod", "theirs": "x"})
	w.until("web", ready)
	edit(`"team":"api"`)
	w.wears(shop, map[string]string{"team": "web", "stage": "prod", "theirs": "x"})
	w.until("web", ready)

	// What somebody puts back is no drift any more.
	w.deploy("web", nil, correct(false))
	edit(`"team":"api"`)
	w.until("web", in(fleet.Modified))
	edit(`"team":"web"`)
	w.until("web", ready)
	w.deploy("web", nil, marked)
	w.until("web", gone)
}

func TestLabelsOfTheNamespaceAsTheAccount(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	for _, namespace := range []string{w.state, shop} {
		w.apply(fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n", namespace))
	}
	w.account("dev", shop)
	w.deploy("web", []string{configMap(shop, "a", "1")}, dressing(shop, "team", "web"), func(bd *fleet.BundleDeployment) {
		bd.Spec.Options.ServiceAccount = "dev"
	})
	w.start()
	bd := w.until("web", in(fleet.ErrApplied))
	if message := deployedMessage(bd); !strings.Contains(message, "Namespace "+shop) || !strings.Contains(message, `cannot get resource "namespaces"`) {
		t.Errorf("message: %s", message)
	}
	w.untilValue(shop, "a", "1")
	w.wears(shop, nil)
}
