package access_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"testing"

	"golang.org/x/crypto/ssh/knownhosts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/flotilla-sh/flotilla/internal/hub/access"
	"github.com/flotilla-sh/flotilla/internal/source/git/gittest"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

func reader(objects ...client.Object) *access.Reader {
	return &access.Reader{Namespace: "system", Live: fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(objects...).Build()}
}

func repoOf(secret string) *fleet.GitRepo {
	return &fleet.GitRepo{
		ObjectMeta: metav1.ObjectMeta{Namespace: "space", Name: "app"},
		Spec:       fleet.GitRepoSpec{Repo: "git@example.com:app", ClientSecretName: secret},
	}
}

func secret(name string, data map[string]string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "space", Name: name}, Type: corev1.SecretTypeSSHAuth, Data: map[string][]byte{}}
	for k, v := range data {
		s.Data[k] = []byte(v)
	}
	return s
}

func TestHostKeys(t *testing.T) {
	key, host := gittest.NewKey(t)
	own := knownhosts.Line([]string{"own.example.com"}, host.PublicKey())
	hosts := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "known-hosts"}, Data: map[string]string{"known_hosts": "for all"}}
	for name, tt := range map[string]struct {
		objects []client.Object
		want    string
	}{
		"of the Secret":        {[]client.Object{hosts, secret("key", map[string]string{"ssh-privatekey": string(key), "known_hosts": own})}, own},
		"of the ConfigMap":     {[]client.Object{hosts, secret("key", map[string]string{"ssh-privatekey": string(key)})}, "for all"},
		"an empty one is none": {[]client.Object{hosts, secret("key", map[string]string{"ssh-privatekey": string(key), "known_hosts": "\n"})}, "for all"},
		"no ConfigMap":         {[]client.Object{secret("key", map[string]string{"ssh-privatekey": string(key)})}, ""},
		"another's ConfigMap":  {[]client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "space", Name: "known-hosts"}, Data: hosts.Data}, secret("key", map[string]string{"ssh-privatekey": string(key)})}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			remote, err := reader(tt.objects...).Remote(t.Context(), repoOf("key"))
			if err != nil || string(remote.Credentials.KnownHosts) != tt.want {
				t.Errorf("host keys %q, %v; want %q", remote.Credentials.KnownHosts, err, tt.want)
			}
		})
	}
}

func TestAppsAreShared(t *testing.T) {
	text := func() string {
		key, err := rsa.GenerateKey(rand.Reader, 1024)
		if err != nil {
			t.Fatal(err)
		}
		return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
	}
	one := map[string]string{"github_app_id": "1", "github_app_installation_id": "2", "github_app_private_key": text()}
	other := map[string]string{"github_app_id": "1", "github_app_installation_id": "2", "github_app_private_key": text()}
	r := reader(secret("a", one), secret("b", one), secret("c", other))
	get := func(name string) any {
		remote, err := r.Remote(t.Context(), repoOf(name))
		if err != nil {
			t.Fatal(err)
		}
		return remote.Credentials.App
	}
	if get("a") != get("a") || get("a") != get("b") || get("a") == get("c") {
		t.Error("an App is shared by those with the same key, and by nobody else")
	}
}
