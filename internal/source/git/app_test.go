package git_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"crypto"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/source/git"
	"github.com/flotilla-sh/flotilla/internal/source/git/gittest"
)

// gitHub is a server with an installation of an App, whose newest token opens
// its repositories.
type gitHub struct {
	*testing.T
	server *gittest.Server
	key    *rsa.PrivateKey
	// code is what it answers to who asks for a token; 201 where it is zero.
	code  int
	given int
	life  time.Duration
}

func newGitHub(t *testing.T) *gitHub {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	g := &gitHub{T: t, key: key, life: time.Hour}
	g.server = gittest.ServeTLS(t)
	g.server.Logins["nobody"] = secret
	g.server.Beside = map[string]http.HandlerFunc{"/api/v3/app/installations/77/access_tokens": g.token}
	return g
}

func (g *gitHub) token(w http.ResponseWriter, r *http.Request) {
	if !g.proven(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")) {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if g.code != 0 {
		w.WriteHeader(g.code)
		return
	}
	g.given++
	name := fmt.Sprintf("%s-%d", secret, g.given)
	g.server.Logins["x-access-token"] = name
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(map[string]any{"token": name, "expires_at": time.Now().Add(g.life)})
}

// proven checks a JSON Web Token as GitHub does.
func (g *gitHub) proven(jwt string) bool {
	parts := strings.Split(jwt, ".")
	if len(parts) != 3 {
		return false
	}
	signature, _ := base64.RawURLEncoding.DecodeString(parts[2])
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if rsa.VerifyPKCS1v15(&g.key.PublicKey, crypto.SHA256, sum[:], signature) != nil {
		return false
	}
	text, _ := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Iat, Exp int64
		Iss      string
	}
	_ = json.Unmarshal(text, &claims)
	now := time.Now().Unix()
	return claims.Iss == "12" && claims.Iat < now && claims.Exp > now && claims.Exp-claims.Iat <= 600
}

func (g *gitHub) data() map[string][]byte {
	text := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(g.key)})
	return map[string][]byte{"github_app_id": []byte("12\n"), "github_app_installation_id": []byte("77"), "github_app_private_key": text}
}

func (g *gitHub) remote(data map[string][]byte) git.Remote {
	g.Helper()
	c, err := git.CredentialsFromSecret("Opaque", data)
	if err != nil {
		g.Fatal(err)
	}
	return git.Remote{URL: g.server.URL + "/fleet.git", Branch: "main", Credentials: c, TLS: git.TLS{CABundle: certPEM(g.server.Certificate().Raw)}}
}

func TestGitHubApp(t *testing.T) {
	g := newGitHub(t)
	repo := gittest.NewRepo(t, g.server.Root, "fleet.git")
	repo.Push("a", "1")
	r, c := g.remote(g.data()), newCache(t)
	wantFile(t, sync(t, c, r), "a", "1")
	repo.Push("a", "2")
	wantFile(t, sync(t, c, r), "a", "2")
	if g.given != 1 {
		t.Errorf("%d tokens were asked for, want one", g.given)
	}
	// A token that ends early is refused once, and then replaced.
	g.server.Logins["x-access-token"] = "other"
	_, err := git.Resolve(t.Context(), r)
	(complaint{fault.Waiting, "GitUnauthorized", []string{"GitHub App"}}).check(t, err)
	sync(t, c, r)
	// One that is about to end is replaced before.
	g.life = time.Minute
	again := g.remote(g.data())
	sync(t, c, again)
	if before := g.given; git.Identity(again) != git.Identity(r) {
		t.Error("a new token is a new identity")
	} else if sync(t, c, again); g.given == before {
		t.Error("a token at its end was used")
	}
}

func TestGitHubAppComplains(t *testing.T) {
	g := newGitHub(t)
	gittest.NewRepo(t, g.server.Root, "fleet.git").Push("a", "1")
	for name, tt := range map[string]struct {
		code   int
		change func(map[string][]byte)
		want   complaint
	}{
		"another App":         {0, func(d map[string][]byte) { d["github_app_id"] = []byte("13") }, complaint{fault.Waiting, "GitUnauthorized", []string{"does not accept the private key of the GitHub App 13", "github_app_id"}}},
		"no installation":     {404, nil, complaint{fault.Waiting, "GitUnauthorized", []string{"no installation 77 of the GitHub App 12", "github_app_installation_id"}}},
		"suspended":           {403, nil, complaint{fault.Waiting, "GitUnauthorized", []string{"suspended"}}},
		"a server in trouble": {502, nil, complaint{fault.Transient, "GitUnreachable", []string{"502"}}},
	} {
		t.Run(name, func(t *testing.T) {
			g.code = tt.code
			data := g.data()
			if tt.change != nil {
				tt.change(data)
			}
			_, err := git.Resolve(t.Context(), g.remote(data))
			tt.want.check(t, err)
		})
	}
	plain := g.remote(g.data())
	plain.URL = strings.Replace(plain.URL, "https:", "http:", 1)
	_, err := git.Resolve(t.Context(), plain)
	(complaint{fault.Stalled, "InvalidSecret", []string{"https://"}}).check(t, err)
	for key, value := range map[string]string{"github_app_id": "", "github_app_installation_id": "x", "github_app_private_key": secret} {
		data := g.data()
		data[key] = []byte(value)
		_, err := git.CredentialsFromSecret("Opaque", data)
		(complaint{fault.Stalled, "InvalidSecret", []string{key}}).check(t, err)
	}
}
