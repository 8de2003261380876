package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

const (
	system, space = "system", "fleet-default"
	// global and own are the secrets for all and of one GitRepo.
	global, own = "for-all", "for-one"
)

// site is a receiver with GitRepos that follow one repository in several ways.
type site struct {
	*testing.T
	*Receiver
	clock *clocktesting.FakeClock
}

// watchers are the GitRepos of a site.
var watchers = map[string]fleet.GitRepoSpec{
	"https":    {Repo: "https://github.com/acme/fleet", Branch: "main"},
	"ssh":      {Repo: "git@GitHub.com:acme/fleet.git", Branch: "main"},
	"branch":   {Repo: "https://github.com/acme/fleet", Branch: "release"},
	"standard": {Repo: "https://github.com/acme/fleet"},
	"tag":      {Repo: "https://github.com/acme/fleet", Revision: "v1.2"},
	"commit":   {Repo: "https://github.com/acme/fleet", Branch: "main", Revision: strings.Repeat("a", 40)},
	"own":      {Repo: "https://github.com/acme/fleet", Branch: "main", WebhookSecret: "own"},
	"lost":     {Repo: "https://github.com/acme/fleet", Branch: "main", WebhookSecret: "lost"},
	"other":    {Repo: "https://github.com/acme/other", Branch: "main"},
}

func newSite(t *testing.T, keys ...string) site {
	scheme := clientgoscheme.Scheme
	if err := fleet.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	secret := func(namespace, name, value string) *corev1.Secret {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string][]byte{}}
		for _, key := range keys {
			s.Data[key] = []byte(value + "\n")
		}
		return s
	}
	objects := []client.Object{secret(system, fleet.WebhookSecret, global), secret(space, "own", own)}
	for name, spec := range watchers {
		objects = append(objects, &fleet.GitRepo{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: name}, Spec: spec})
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&fleet.GitRepo{}).WithIndex(&fleet.GitRepo{}, placeIndex, placesOf).Build()
	clock := clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	r := &Receiver{Client: c, Live: c, Namespace: system, Events: &events.FakeRecorder{}, Clock: clock}
	r.prepare(prometheus.NewRegistry())
	return site{t, r, clock}
}

func sign(key string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

// githubPush is a signed push.
func githubPush(key, ref, commit string) (http.Header, []byte) {
	body := fmt.Appendf(nil, `{"ref":%q,"after":%q,"repository":{"clone_url":"https://github.com/acme/fleet.git"}}`, ref, commit)
	h := headerOf(github)
	h.Set("X-Hub-Signature-256", "sha256="+sign(key, body))
	return h, body
}

func (s site) post(h http.Header, body []byte) (int, string) {
	s.Helper()
	req := httptest.NewRequestWithContext(s.Context(), http.MethodPost, "/", bytes.NewReader(body))
	req.Header = h
	w := httptest.NewRecorder()
	s.ServeHTTP(w, req)
	return w.Code, w.Body.String()
}

// told returns the commits that GitRepos were told of, by name.
func (s site) told() map[string]string {
	s.Helper()
	list := &fleet.GitRepoList{}
	if err := s.Client.List(s.Context(), list); err != nil {
		s.Fatal(err)
	}
	out := map[string]string{}
	for _, r := range list.Items {
		if !r.Status.LastWebhookTime.IsZero() {
			out[r.Name] = r.Status.WebhookCommit
		}
		if r.Status.Commit != "" || r.Status.PollingCommit != "" || r.Spec.PollingInterval != nil {
			s.Errorf("a webhook has changed more of %s than its own fields: %+v", r.Name, r)
		}
	}
	return out
}

func TestWhoIsTold(t *testing.T) {
	for name, tt := range map[string]struct {
		key, ref string
		code     int
		told     string
	}{
		"a branch":                      {global, "refs/heads/main", 200, "https ssh"},
		"another branch":                {global, "refs/heads/release", 200, "branch"},
		"the branch of those without":   {global, "refs/heads/master", 200, "standard"},
		"a branch that nobody follows":  {global, "refs/heads/feature", 200, ""},
		"a tag":                         {global, "refs/tags/v1.2", 200, "tag"},
		"a tag named like a branch":     {global, "refs/tags/main", 200, ""},
		"with the secret of one":        {own, "refs/heads/main", 200, "own"},
		"with the secret of nobody":     {"guess", "refs/heads/main", 401, ""},
		"with an empty secret":          {"", "refs/heads/main", 401, ""},
		"a branch named like a program": {global, "refs/heads/$(reboot)", 200, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, "github")
			code, text := s.post(githubPush(tt.key, tt.ref, second))
			if code != tt.code {
				t.Errorf("answered %d %s, want %d", code, text, tt.code)
			}
			want := map[string]string{}
			for _, name := range strings.Fields(tt.told) {
				want[name] = second
			}
			if got := s.told(); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("told %v, want %v", got, want)
			}
		})
	}
}

func TestEachProviderProvesItself(t *testing.T) {
	login := func(user, password string) string {
		r := &http.Request{Header: http.Header{}}
		r.SetBasicAuth(user, password)
		return r.Header.Get("Authorization")
	}
	for p, tt := range map[provider]struct {
		header string
		good   func(body []byte) string
		bad    []string
	}{
		github:          {"X-Hub-Signature-256", func(b []byte) string { return "sha256=" + sign(global, b) }, []string{"", "sha256=", "sha1=abcd", "zz"}},
		gogs:            {"X-Gitea-Signature", func(b []byte) string { return sign(global, b) }, []string{"", "abcd"}},
		gitlab:          {"X-Gitlab-Token", func([]byte) string { return global }, []string{"", "for-al", "for-all "}},
		bitbucket:       {"X-Hub-Signature", func(b []byte) string { return "sha256=" + sign(global, b) }, []string{"", "sha256=00"}},
		bitbucketServer: {"X-Hub-Signature", func(b []byte) string { return "sha256=" + sign(global, b) }, []string{"", "sha256=00"}},
		azure:           {"Authorization", func([]byte) string { return login(global, global) }, []string{"", login(global, ""), login("", global), "Bearer " + global}},
	} {
		t.Run(string(p), func(t *testing.T) {
			s := newSite(t, string(p), keyAzureUser, keyAzurePassword)
			body := sample(t, p)
			for _, bad := range tt.bad {
				h := headerOf(p)
				h.Set(tt.header, bad)
				if code, text := s.post(h, body); code != http.StatusUnauthorized {
					t.Errorf("%s %q answered %d %s, want 401", tt.header, bad, code, text)
				}
			}
			h := headerOf(p)
			h.Set(tt.header, tt.good(body))
			if code, text := s.post(h, body); code != http.StatusOK {
				t.Errorf("answered %d %s", code, text)
			}
			if code, _ := s.post(h, body); code != http.StatusOK {
				t.Errorf("the same once more was answered %d, want 200", code)
			}
			if code, _ := s.post(h, append(body, ' ')); code == http.StatusOK && p != gitlab && p != azure {
				t.Error("a signature was taken for another body")
			}
			without := newSite(t)
			if code, _ := without.post(h, body); code != http.StatusUnauthorized {
				t.Errorf("without any secret it was answered %d, want 401", code)
			}
		})
	}
}

func TestBitbucketByTheIDOfItsHook(t *testing.T) {
	h := headerOf(bitbucket)
	h.Set("X-Hook-UUID", "{FOR-ALL}")
	if code, text := newSite(t, "bitbucket").post(h, sample(t, bitbucket)); code != http.StatusOK {
		t.Errorf("answered %d %s", code, text)
	}
}

// Servers that do not know their own address send no links.
func TestBitbucketServerWithoutLinks(t *testing.T) {
	s := newSite(t, "bitbucket-server")
	body := []byte(`{"repository":{"slug":"fleet","project":{"key":"ACME"}},"changes":[{"ref":{"id":"refs/heads/release"},"toHash":"` + second + `"}]}`)
	h := headerOf(bitbucketServer)
	h.Set("X-Hub-Signature", "sha256="+sign(global, body))
	if code, text := s.post(h, body); code != http.StatusOK || fmt.Sprint(s.told()) != "map[branch:"+second+"]" {
		t.Errorf("answered %d %s, told %v", code, text, s.told())
	}
	h.Set("X-Hub-Signature", "sha256="+sign("guess", body))
	if code, _ := s.post(h, body); code != http.StatusUnauthorized {
		t.Errorf("without the secret it was answered %d", code)
	}
}

// The same webhook again and again costs one look each second, and the last push
// of a storm is not lost.
func TestStormIsToldTogether(t *testing.T) {
	s := newSite(t, "github")
	var writes atomic.Int64
	s.Client = interceptor.NewClient(s.Client.(client.WithWatch), interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, o ...client.SubResourcePatchOption) error {
			writes.Add(1)
			return c.SubResource(sub).Patch(ctx, obj, patch, o...)
		},
	})
	began := time.Now()
	for i := range 100 {
		if code, text := s.post(githubPush(global, "refs/heads/release", fmt.Sprintf("%040d", i+1))); code != http.StatusOK {
			t.Fatalf("answered %d %s", code, text)
		}
	}
	if most := lookBurst + 2 + int64(time.Since(began).Seconds()); writes.Load() > most {
		t.Errorf("%d writes for 100 webhooks, want at most %d", writes.Load(), most)
	}
	for deadline := time.Now().Add(time.Minute); s.told()["branch"] != fmt.Sprintf("%040d", 100); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("told of %v, want the last", s.told())
		}
	}
}

func TestSendersAreLimitedByThemselves(t *testing.T) {
	s := newSite(t, "github")
	post := func(addr, forwarded string) int {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader("{}"))
		req.Header, req.RemoteAddr = headerOf(github), addr
		if forwarded != "" {
			req.Header.Set("X-Forwarded-For", forwarded)
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, req)
		return w.Code
	}
	for range burst {
		post("203.0.113.1:1234", "")
	}
	for i, tt := range []struct {
		addr, forwarded string
		code            int
	}{
		{"203.0.113.1:99", "", 429},
		{"203.0.113.1:99", "198.51.100.7", 429}, // it is no ingress, whatever it says
		{"203.0.113.2:99", "", 401},
		{"10.0.0.1:99", "203.0.113.1", 429},
		{"10.0.0.1:99", "203.0.113.1, 198.51.100.7", 401},
		{"[2001:db8::1]:99", "", 401},
	} {
		if code := post(tt.addr, tt.forwarded); code != tt.code {
			t.Errorf("%d: answered %d, want %d", i, code, tt.code)
		}
	}
	now := s.clock.Now()
	for i := range maxSources + 10 {
		s.sources.allow(fmt.Sprint(i), now)
	}
	if n := len(s.sources.by); n > maxSources+1 {
		t.Errorf("%d senders are told apart", n)
	}
}

// Requests whose bodies do not come in keep neither other senders out nor their
// own place for ever.
func TestSlowBodiesKeepNobodyOut(t *testing.T) {
	s := newSite(t, "github")
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	for range atOnce {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if _, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: hub\r\nX-Forwarded-For: 203.0.113.1\r\nContent-Length: 1000\r\n\r\n{"); err != nil {
			t.Fatal(err)
		}
	}
	for len(s.slots) < ofEach {
		if err := t.Context().Err(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	if code, text := s.post(githubPush(global, "refs/heads/main", strings.Repeat("b", 40))); code != http.StatusOK {
		t.Errorf("another sender is answered %d: %s", code, text)
	}
	deadline := time.Now().Add(time.Minute)
	for len(s.slots) > 0 {
		if time.Now().After(deadline) {
			t.Fatal("a body that does not come in keeps its place")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestGone(t *testing.T) {
	s := newSite(t, "github")
	if code, _ := s.post(githubPush(global, "refs/heads/release", strings.Repeat("0", 40))); code != http.StatusOK {
		t.Errorf("answered %d", code)
	}
	if got := s.told(); fmt.Sprint(got) != "map[branch:]" {
		t.Errorf("told %v, want branch to look, without a commit", got)
	}
}

func TestBounds(t *testing.T) {
	s := newSite(t, "github")
	if code, _ := s.post(headerOf(github), bytes.Repeat([]byte("x"), bodyLimit+1)); code != http.StatusRequestEntityTooLarge {
		t.Errorf("a large body was answered %d", code)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("GET was answered %d", w.Code)
	}
}
