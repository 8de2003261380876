package hubtest_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/charts"
	"github.com/flotilla-sh/flotilla/internal/lab/labtest"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

const (
	releaseName      = "meta.helm.sh/release-name"
	releaseNamespace = "meta.helm.sh/release-namespace"
)

// helm is the real program, for the charts as they are shipped.
type helm struct {
	*world
	program, kubeconfig, charts string
}

func newHelm(t *testing.T) helm {
	t.Helper()
	program := filepath.Join(labtest.Bin(), "tools", "helm")
	if _, err := os.Stat(program); err != nil {
		t.Skipf("needs the program: run `make tools` first (%v)", err)
	}
	h := helm{world: newWorld(t), program: program, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig"), charts: filepath.Join(t.TempDir(), "charts")}
	h.must(os.CopyFS(h.charts, charts.FS))
	c := server.config
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: c.Host, CertificateAuthority: c.CAFile, CertificateAuthorityData: c.CAData}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{
		ClientCertificate: c.CertFile, ClientCertificateData: c.CertData,
		ClientKey: c.KeyFile, ClientKeyData: c.KeyData, Token: c.BearerToken,
	}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "c"
	h.must(clientcmd.WriteToFile(*config, h.kubeconfig))
	return h
}

// run runs helm in the hub's namespace.
func (h helm) run(args ...string) (string, error) {
	h.Helper()
	cmd := exec.CommandContext(h.ctx, h.program, append(args, "--namespace", systemNamespace, "--kubeconfig", h.kubeconfig)...)
	cmd.Env = append(os.Environ(), "HOME="+h.TempDir())
	cmd.Dir = h.charts
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (h helm) succeeds(args ...string) {
	h.Helper()
	if out, err := h.run(args...); err != nil {
		h.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// owner returns of which release an object is.
func (h helm) owner(obj client.Object) string {
	h.Helper()
	if !h.exists(obj) {
		return "nothing, it is gone"
	}
	return obj.GetAnnotations()[releaseName]
}

// ownedBy marks an object as one of a release of Rancher Fleet's.
func ownedBy(release string, obj client.Object) client.Object {
	obj.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "Helm"})
	obj.SetAnnotations(map[string]string{releaseName: release, releaseNamespace: systemNamespace})
	return obj
}

// TestInstallWhereRancherFleetWas follows what the operations page says.
func TestInstallWhereRancherFleetWas(t *testing.T) {
	h := newHelm(t)
	ours, local := &corev1.Namespace{}, &corev1.Namespace{}
	ours.Name, local.Name = systemNamespace, "fleet-local"
	for _, namespace := range []*corev1.Namespace{ours, local} {
		h.must(client.IgnoreAlreadyExists(h.client.Create(h.ctx, namespace)))
	}
	known := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: fleet.KnownHostsConfigMap}}
	h.create(ownedBy("fleet", known))
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "gitrepos.fleet.cattle.io"}}
	h.must(h.client.Get(h.ctx, client.ObjectKeyFromObject(crd), crd))
	h.must(h.client.Update(h.ctx, ownedBy("fleet-crd", crd)))
	repo := &fleet.GitRepo{ObjectMeta: h.meta("before"), Spec: fleet.GitRepoSpec{Repo: "https://git.example/app"}}
	h.create(repo)
	t.Cleanup(func() { h.must(client.IgnoreNotFound(server.client.Delete(context.Background(), known))) })

	for _, chart := range []string{"flotilla-crd", "flotilla"} {
		if out, err := h.run("upgrade", "--install", chart, chart); err == nil || !strings.Contains(out, "invalid ownership metadata") || strings.Contains(out, `Namespace "fleet-`) {
			t.Errorf("%s is installed over what is Rancher Fleet's: %v\n%s", chart, err, out)
		}
		h.succeeds("upgrade", "--install", chart, chart, "--take-ownership")
	}
	for obj, want := range map[client.Object]string{
		crd: "flotilla-crd", known: "flotilla", local: "", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "fleet-default"}}: "flotilla",
	} {
		if got := h.owner(obj); got != want {
			t.Errorf("%T %s is of release %q, want %q", obj, obj.GetName(), got, want)
		}
	}
	// What comes later needs nothing of this.
	h.succeeds("upgrade", "flotilla", "flotilla", "--set", "knownHosts.wellKnown=false")
	h.succeeds("uninstall", "flotilla")
	h.succeeds("install", "flotilla", "flotilla")
	h.succeeds("uninstall", "flotilla")
	for _, obj := range []client.Object{repo, local, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "fleet-default"}}} {
		if !h.exists(obj) || obj.GetDeletionTimestamp() != nil {
			t.Errorf("%T %s is gone", obj, obj.GetName())
		}
	}
}
