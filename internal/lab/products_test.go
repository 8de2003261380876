package lab_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/flotilla-sh/flotilla/internal/lab"
)

// TestProducts installs the charts that are shipped, and takes a hub that
// does no more than give every cluster its namespace and identity, with the
// rights that the chart gives it.
func TestProducts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "lab")
	l := startLab(t, lab.Options{
		Dir: dir, Spokes: lab.DefaultSpokes(1), Programs: programs(t), Products: true,
		AgentArgs: []string{"--heartbeat=1s"},
	})
	status := l.Status()
	hub := cluster{status.Kubectl, status.Hub.Kubeconfig}
	if out := hub.run(t, "-n", "fleet-default", "get", "clusters.fleet.cattle.io", "dev", "--show-labels"); !strings.Contains(out, "env=dev,name=dev,region=eu-west") {
		t.Errorf("the cluster's labels: %s", out)
	}
	agent := cluster{status.Kubectl, filepath.Join(dir, "dev-hub.kubeconfig")}
	who := agent.run(t, "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
	if who != "system:serviceaccount:cluster-dev:flotilla-agent" {
		t.Errorf("the agent is %s on the hub", who)
	}
	if out := agent.run(t, "config", "view", "--minify", "-o", "jsonpath={..namespace}"); out != "cluster-dev" {
		t.Errorf("the agent's namespace on the hub is %q", out)
	}
	spoke := cluster{status.Kubectl, filepath.Join(dir, "dev-agent.kubeconfig")}
	if out := spoke.run(t, "auth", "can-i", "*", "*"); out != "yes" {
		t.Errorf("the agent may do everything on its cluster: %s", out)
	}
	if out, _ := agent.try("auth", "can-i", "list", "secrets", "-A"); out != "no" {
		t.Errorf("the agent may list secrets on the hub: %s", out)
	}
	if err := l.StopUnit(lab.AgentOf("dev")); err != nil {
		t.Error(err)
	}
	if err := l.StartUnit(t.Context(), lab.AgentOf("dev")); err != nil {
		t.Error(err)
	}
	if found := strings.Join(processesIn(t, dir), "\n"); !strings.Contains(found, "--heartbeat=60s") || !strings.Contains(found, "--heartbeat=1s") {
		t.Errorf("the agent does not have the chart's arguments and then ours: %s", found)
	}
}

var clusters = schema.GroupVersionResource{Group: "fleet.cattle.io", Version: "v1alpha1", Resource: "clusters"}

// standInHub gives every Cluster a namespace with a ServiceAccount.
func standInHub(ctx context.Context, args []string) error {
	var path string
	for _, arg := range args {
		if value, ok := strings.CutPrefix(arg, "--kubeconfig="); ok {
			path = value
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		if err := standInRound(ctx, dynamic.NewForConfigOrDie(config), kubernetes.NewForConfigOrDie(config)); err != nil {
			fmt.Println(err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	return nil
}

func standInRound(ctx context.Context, objects dynamic.Interface, core kubernetes.Interface) error {
	found, err := objects.Resource(clusters).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range found.Items {
		name := "cluster-" + c.GetName()
		_, err := core.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		errs = append(errs, unlessExists(err))
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "flotilla-agent"}}
		_, err = core.CoreV1().ServiceAccounts(name).Create(ctx, account, metav1.CreateOptions{})
		errs = append(errs, unlessExists(err))
		patch := fmt.Appendf(nil, `{"status":{"namespace":%q,"agent":{"lastSeen":"2026-01-01T00:00:00Z"}}}`, name)
		_, err = objects.Resource(clusters).Namespace(c.GetNamespace()).Patch(ctx, c.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}, "status")
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func unlessExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
