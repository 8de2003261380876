package agent_test

import (
	"fmt"
	"strings"
	"testing"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// account makes a service account that may do everything with the ConfigMaps of
// one namespace.
func (w *world) account(name, namespace string) {
	w.t.Helper()
	w.apply(fmt.Sprintf("apiVersion: v1\nkind: ServiceAccount\nmetadata: {namespace: %s, name: %s}\n", w.state, name))
	w.apply(fmt.Sprintf("apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {namespace: %s, name: dev}\nrules: [{apiGroups: [\"\"], resources: [configmaps], verbs: [get, create, patch, delete]}]\n", namespace))
	w.apply(fmt.Sprintf("apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {namespace: %[1]s, name: dev}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: dev}\nsubjects: [{kind: ServiceAccount, namespace: %[2]s, name: %[3]s}]\n", namespace, w.state, name))
}

func TestActsAsTheAccount(t *testing.T) {
	for _, name := range []string{"dev", "fleet-default"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			shop := w.ns("shop")
			for _, namespace := range []string{w.state, shop} {
				w.apply(fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n", namespace))
			}
			w.account(name, shop)
			as := func(bd *fleet.BundleDeployment) {
				if name != "fleet-default" {
					bd.Spec.Options.ServiceAccount = name
				}
				bd.Spec.CorrectDrift = &fleet.CorrectDrift{Enabled: true}
			}
			w.deploy("web", []string{configMap(shop, "a", "1"), configMap(shop, "b", "1")}, as)
			w.start()
			w.until("web", ready)
			w.edit(w.must("v1/ConfigMap", shop, "a"), "someone", `{"data":{"key":"2"}}`)
			w.untilValue(shop, "a", "1")

			w.deploy("web", []string{configMap(shop, "a", "1"), configMap(w.state, "b", "1")}, as)
			bd := w.until("web", in(fleet.ErrApplied))
			want := "User \"system:serviceaccount:" + w.state + ":" + name + "\" cannot patch resource \"configmaps\""
			if message := deployedMessage(bd); !strings.Contains(message, want) {
				t.Errorf("message %q does not say %q", message, want)
			}
			w.must("v1/ConfigMap", shop, "b")

			w.deploy("web", nil, func(bd *fleet.BundleDeployment) { bd.Spec.Removal = &fleet.Removal{Reason: "test"} })
			w.until("web", func(bd *fleet.BundleDeployment) error {
				if s := bd.Status.RemovalState; s == nil || !strings.Contains(s.Message, "forbidden") {
					return fmt.Errorf("removal: %+v", s)
				}
				return nil
			})
		})
	}
}
