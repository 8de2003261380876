package git_test

import (
	"encoding/pem"
	"os"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/source/git"
	"github.com/flotilla-sh/flotilla/internal/source/git/gittest"
)

func certPEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func basic(user, password string) git.Credentials {
	return git.Credentials{Username: user, Password: password}
}

func TestBasicAuth(t *testing.T) {
	s := newSite(t)
	s.server.Logins["user"] = secret
	for name, test := range map[string]struct {
		url         string
		credentials git.Credentials
		want        *complaint
	}{
		"right":                   {credentials: basic("user", secret)},
		"in the URL":              {url: "user:" + secret + "@"},
		"Secret wins over URL":    {url: "user:old-" + secret + "@", credentials: basic("user", secret)},
		"wrong":                   {credentials: basic("user", "not-"+secret), want: &complaint{fault.Waiting, "GitUnauthorized", []string{"does not accept the credentials"}}},
		"wrong in the URL":        {url: secret + "@", want: &complaint{fault.Waiting, "GitUnauthorized", []string{"does not accept"}}},
		"none":                    {want: &complaint{fault.Waiting, "GitUnauthorized", []string{"clientSecretName", "kubernetes.io/basic-auth"}}},
		"SSH key for an HTTP URL": {credentials: git.Credentials{PrivateKey: []byte(secret)}, want: &complaint{fault.Stalled, "InvalidSecret", []string{"kubernetes.io/basic-auth"}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := s.remote()
			r.URL = strings.Replace(r.URL, "://", "://"+test.url, 1)
			r.Credentials = test.credentials
			_, err := git.Resolve(t.Context(), r)
			if test.want != nil {
				test.want.check(t, err)
				_, err = newCache(t).Fetch(t.Context(), r, s.first)
				test.want.check(t, err)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			wantFile(t, fetch(t, newCache(t), r, s.first), "app/cm.yaml", "v: 1\n")
		})
	}
}

func TestSSH(t *testing.T) {
	root := t.TempDir()
	repo := gittest.NewRepo(t, root, "fleet.git")
	first := repo.Push("a", "1")
	gittest.NewRepo(t, root, "empty.git")
	server := gittest.ServeSSH(t, root)
	stranger, _ := gittest.NewKey(t)
	_, impostor := gittest.NewKey(t)
	line := func(addr string) []byte { return []byte(knownhosts.Line([]string{addr}, impostor.PublicKey())) }
	good := git.Credentials{PrivateKey: server.ClientKey, KnownHosts: server.KnownHosts}

	for name, test := range map[string]struct {
		path        string
		credentials git.Credentials
		want        *complaint
	}{
		"right": {"fleet.git", good, nil},
		"key that the server does not know": {"fleet.git", git.Credentials{PrivateKey: stranger, KnownHosts: server.KnownHosts},
			&complaint{fault.Waiting, "GitUnauthorized", []string{"does not accept the credentials"}}},
		"another host key": {"fleet.git", git.Credentials{PrivateKey: server.ClientKey, KnownHosts: line(server.Addr)},
			&complaint{fault.Waiting, "GitServerUntrusted", []string{"line 1 of known_hosts", "somebody may be listening in"}}},
		"host not in known_hosts": {"fleet.git", git.Credentials{PrivateKey: server.ClientKey, KnownHosts: line("other.example.com")},
			&complaint{fault.Stalled, "HostKeyUnknown", []string{"ssh-keyscan"}}},
		"no known_hosts": {"fleet.git", git.Credentials{PrivateKey: server.ClientKey},
			&complaint{fault.Stalled, "HostKeyUnknown", []string{"add the key known_hosts", "ssh-keyscan 127.0.0.1"}}},
		"password for an SSH URL": {"fleet.git", basic("git", secret),
			&complaint{fault.Stalled, "InvalidSecret", []string{"kubernetes.io/ssh-auth"}}},
		"no such repository": {"nowhere.git", good,
			&complaint{fault.Waiting, "RepositoryNotFound", []string{"nowhere.git", "the server said"}}},
		"empty repository": {"empty.git", good,
			&complaint{fault.Waiting, "RepositoryEmpty", []string{"push a commit"}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := git.Remote{URL: "ssh://git@" + server.Addr + "/" + test.path, Branch: "main", Credentials: test.credentials}
			_, err := git.Resolve(t.Context(), r)
			if test.want != nil {
				test.want.check(t, err)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			c := newCache(t)
			wantFile(t, fetch(t, c, r, first), "a", "1")
			repo.Push("a", "2")
			wantFile(t, sync(t, c, r), "a", "2")
		})
	}
}

// The hub's pod has no place for temporary files.
func TestSSHWithoutTemporaryFiles(t *testing.T) {
	root := t.TempDir()
	first := gittest.NewRepo(t, root, "fleet.git").Push("a", "1")
	server := gittest.ServeSSH(t, root)
	cache := newCache(t)
	t.Setenv("TMPDIR", os.DevNull)
	credentials, err := git.CredentialsFromSecret(git.SecretTypeSSHAuth, map[string][]byte{
		"ssh-privatekey": server.ClientKey, "known_hosts": server.KnownHosts,
	})
	if err != nil {
		t.Fatal(err)
	}
	r := git.Remote{URL: "ssh://git@" + server.Addr + "/fleet.git", Branch: "main", Credentials: credentials}
	wantFile(t, fetch(t, cache, r, first), "a", "1")
}

func TestCredentialsFromSecret(t *testing.T) {
	key, signer := gittest.NewKey(t)
	known := knownhosts.Line([]string{"example.com"}, signer.PublicKey())
	stalled := func(says ...string) *complaint { return &complaint{fault.Stalled, "InvalidSecret", says} }
	for name, test := range map[string]struct {
		secretType string
		data       map[string]string
		want       *complaint
	}{
		"login":              {"kubernetes.io/basic-auth", map[string]string{"username": "u", "password": secret + "\n"}, nil},
		"SSH":                {"kubernetes.io/ssh-auth", map[string]string{"ssh-privatekey": string(key), "known_hosts": known}, nil},
		"SSH, hosts to come": {"kubernetes.io/ssh-auth", map[string]string{"ssh-privatekey": string(key)}, nil},
		"no password":        {"kubernetes.io/basic-auth", map[string]string{"username": "u", "passwd": secret}, stalled("lacks password", "username", "passwd")},
		"empty":              {"kubernetes.io/basic-auth", nil, stalled("lacks username and password", "none")},
		"wrong type":         {"Opaque", map[string]string{"password": secret}, stalled(`"Opaque"`, "kubernetes.io/basic-auth", "ssh-privatekey")},
		"no SSH key":         {"kubernetes.io/ssh-auth", map[string]string{"identity": secret}, stalled("lacks ssh-privatekey", "identity")},
		"not a key":          {"kubernetes.io/ssh-auth", map[string]string{"ssh-privatekey": secret}, stalled("ssh-privatekey", "not a PEM")},
		"bad known_hosts": {"kubernetes.io/ssh-auth", map[string]string{"ssh-privatekey": string(key), "known_hosts": known + "\nexample.com what"},
			stalled("known_hosts", "line 2")},
	} {
		t.Run(name, func(t *testing.T) {
			data := map[string][]byte{}
			for k, v := range test.data {
				data[k] = []byte(v)
			}
			got, err := git.CredentialsFromSecret(test.secretType, data)
			if test.want != nil {
				test.want.check(t, err)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.Password != strings.TrimSpace(test.data["password"]) || string(got.PrivateKey) != test.data["ssh-privatekey"] {
				t.Errorf("got %+v", got)
			}
		})
	}
}
