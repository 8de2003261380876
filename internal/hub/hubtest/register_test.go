package hubtest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/content/kube"
	"github.com/flotilla-sh/flotilla/internal/hub/cluster/register"
	"github.com/flotilla-sh/flotilla/internal/names"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// registration is a Cluster and the controller that registers it.
type registration struct {
	*world
	counter *counter
	cluster *fleet.Cluster
	space   string
	hub     string
}

func newRegistration(t *testing.T) *registration {
	t.Helper()
	w := newWorld(t)
	r := &registration{world: w, counter: &counter{Client: w.client}, cluster: &fleet.Cluster{ObjectMeta: w.meta("prod")}}
	r.space = names.ClusterNamespace(w.namespace, "prod")
	w.create(r.cluster)
	return r
}

// reconcile returns how many writes it took.
func (r *registration) reconcile() int32 {
	r.Helper()
	before := r.counter.writes.Load()
	c := &register.Controller{Client: r.counter, Live: r.client, Store: kube.New(r.client), Registries: r.registries(), Hub: r.hub, Clock: r.clock}
	_, err := c.Reconcile(r.ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(r.cluster)})
	r.must(err)
	r.exists(r.cluster)
	return r.counter.writes.Load() - before
}

// TestRegisterKeepsWhoAppliedACluster looks at the record of owners: it is kept
// where somebody needs it to take a field away again, and costs nobody else.
func TestRegisterKeepsWhoAppliedACluster(t *testing.T) {
	r := newRegistration(t)
	r.reconcile()
	if len(r.cluster.ManagedFields) != 0 {
		t.Errorf("a Cluster that nobody applied server-side has a record of owners: %v", r.cluster.ManagedFields)
	}

	r = newRegistration(t)
	apply := func(text string) {
		t.Helper()
		r.must(r.client.Patch(r.ctx, r.cluster, client.RawPatch(types.ApplyPatchType, []byte(text)), client.FieldOwner("gitops"), client.ForceOwnership))
	}
	head := fmt.Sprintf("apiVersion: fleet.cattle.io/v1alpha1\nkind: Cluster\nmetadata:\n  namespace: %s\n  name: %s\n", r.cluster.Namespace, r.cluster.Name)
	apply(head + "  labels: {env: prod, region: eu}\n")
	r.reconcile()
	apply(head + "  labels: {env: prod}\n")
	if r.exists(r.cluster); r.cluster.Labels["region"] != "" || r.cluster.Labels["env"] != "prod" {
		t.Errorf("the labels are %v, want the one that is still applied", r.cluster.Labels)
	}
}

func TestRegisterMakesWhatBelongsToACluster(t *testing.T) {
	r := newRegistration(t)
	r.reconcile()
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: r.space, Name: name} }
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.space}}
	lease := &coordinationv1.Lease{ObjectMeta: meta(fleet.AgentName)}
	binding := &rbacv1.RoleBinding{ObjectMeta: meta(fleet.AgentName)}
	for _, obj := range []client.Object{
		space, lease, binding,
		&corev1.ServiceAccount{ObjectMeta: meta(fleet.AgentName)},
		&corev1.ConfigMap{ObjectMeta: meta(fleet.CapabilitiesName)},
	} {
		if !r.exists(obj) {
			t.Fatalf("there is no %T %s", obj, obj.GetName())
		}
		if obj.GetAnnotations()[fleet.ClusterLabel] != "prod" || obj.GetAnnotations()[fleet.ClusterNamespaceLabel] != r.namespace {
			t.Errorf("%T does not tell of its Cluster: %v", obj, obj.GetAnnotations())
		}
	}
	if binding.RoleRef.Name != fleet.AgentName || binding.Subjects[0].Namespace != r.space {
		t.Errorf("the agent may: %+v", binding)
	}
	r.exists(r.cluster)
	if r.cluster.Status.Namespace != r.space || !fleet.IsConditionTrue(r.cluster.Status.Conditions, fleet.ConditionProcessed) {
		t.Errorf("the Cluster's status is %+v", r.cluster.Status)
	}
}

// TestRegisteredAgentWritesInItsNamespaceAlone asks the API server, with the
// rights of the chart, what a registered agent may write.
func TestRegisteredAgentWritesInItsNamespaceAlone(t *testing.T) {
	r := newRegistration(t)
	for _, obj := range r.chart(nil) {
		if obj.GetKind() == "ClusterRole" && obj.GetName() == fleet.AgentName {
			r.create(obj)
			r.Cleanup(func() { r.must(client.IgnoreNotFound(r.client.Delete(context.Background(), obj))) })
		}
	}
	r.reconcile()
	_, agent, _ := r.serviceAccount(r.space, fleet.AgentName)
	told := `{"metadata":{"annotations":{"` + fleet.AgentReportAnnotation + `":"{}"}}}`
	ask := func(path string) error {
		return agent.Patch(types.MergePatchType).AbsPath(path).Body([]byte(told)).Do(r.ctx).Error()
	}
	leases := "/apis/coordination.k8s.io/v1/namespaces/"
	r.must(wait.PollUntilContextTimeout(r.ctx, 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return ask(leases+r.space+"/leases/"+fleet.AgentName) == nil, nil // as soon as the API server knows of the binding
	}))
	for _, path := range []string{
		fleetPath + "namespaces/" + r.namespace + "/clusters/prod/status",
		fleetPath + "namespaces/" + r.namespace + "/clusters/prod",
		leases + r.space + "/leases/another",
		leases + names.ClusterNamespace(r.namespace, "other") + "/leases/" + fleet.AgentName,
		leases + systemNamespace + "/leases/flotilla-hub",
	} {
		if err := ask(path); !apierrors.IsForbidden(err) {
			t.Errorf("the agent patches %s: %v, want that it may not", path, err)
		}
	}
	roles, bindings := &rbacv1.RoleList{}, &rbacv1.RoleBindingList{}
	r.must(r.client.List(r.ctx, roles, client.InNamespace(r.namespace)))
	r.must(r.client.List(r.ctx, bindings, client.InNamespace(r.namespace)))
	if len(roles.Items)+len(bindings.Items) != 0 {
		t.Errorf("roles %+v, bindings %+v", roles.Items, bindings.Items)
	}
}

func TestRegisterAgain(t *testing.T) {
	for name, tt := range map[string]struct {
		between func(*registration)
		writes  bool
	}{
		"nothing changed": {func(*registration) {}, false},
		"the agent reported": {func(r *registration) {
			lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: r.space, Name: fleet.AgentName}}
			r.exists(lease)
			r.must(r.client.Patch(r.ctx, lease, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"holderIdentity":"agent"}}`))))
		}, false},
		"a field without effect": {func(r *registration) {
			r.cluster.Spec.AgentNamespace = "other"
			r.must(r.client.Update(r.ctx, r.cluster))
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRegistration(t)
			r.reconcile()
			tt.between(r)
			if got := r.reconcile(); (got > 0) != tt.writes {
				t.Errorf("%d writes, want some: %v", got, tt.writes)
			}
			effective := fleet.IsConditionTrue(r.cluster.Status.Conditions, fleet.ConditionEffective)
			if effective == tt.writes {
				t.Errorf("Effective is %v", effective)
			}
		})
	}
}

func TestDeletedClusterGoesWithItsNamespace(t *testing.T) {
	r := newRegistration(t)
	r.reconcile()
	deployment := &fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: r.space, Name: "app", Finalizers: []string{fleet.Finalizer}}}
	r.create(deployment)
	r.must(r.client.Delete(r.ctx, r.cluster))
	r.reconcile()
	if r.exists(r.cluster) {
		t.Error("the Cluster is still there")
	}
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.space}}
	if r.exists(space) && space.DeletionTimestamp.IsZero() {
		t.Error("its namespace stays")
	}
	if r.exists(deployment) && len(deployment.Finalizers) > 0 {
		t.Errorf("its deployment waits for an agent: %v", deployment.Finalizers)
	}
}

func TestRegisteredAgentIsToldWhichHubItServes(t *testing.T) {
	r := newRegistration(t)
	r.hub = "one"
	r.reconcile()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: r.space, Name: fleet.AgentName}}
	for _, hub := range []string{"one", "two"} {
		r.hub = hub
		r.reconcile()
		if !r.exists(lease) || lease.Annotations[fleet.HubAnnotation] != hub || lease.Annotations[fleet.ClusterLabel] != "prod" {
			t.Errorf("the Lease says %v, want hub %s", lease.Annotations, hub)
		}
	}
	if n := r.reconcile(); n != 0 {
		t.Errorf("%d writes although nothing changed", n)
	}
}
