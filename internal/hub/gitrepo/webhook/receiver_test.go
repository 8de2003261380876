package webhook

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
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
			if code, _ := s.post(h, body); code != http.StatusConflict {
				t.Errorf("the same once more was answered %d, want 409", code)
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

func TestReplayIsForgottenInTime(t *testing.T) {
	s := newSite(t, "github")
	h, body := githubPush(global, "refs/heads/main", second)
	for _, step := range []struct {
		after time.Duration
		code  int
	}{{0, 200}, {time.Minute, 409}, {rememberFor - 2*time.Minute, 409}, {3 * time.Minute, 200}} {
		s.clock.Step(step.after)
		if code, _ := s.post(h, body); code != step.code {
			t.Errorf("after %s: answered %d, want %d", step.after, code, step.code)
		}
	}
	for i := range rememberMost + 10 {
		s.seen.take(delivery{byte(i), byte(i >> 8), 1}, s.clock.Now())
	}
	if len(s.seen.at) > rememberMost || len(s.seen.order) > rememberMost {
		t.Errorf("remembers %d deliveries, want at most %d", len(s.seen.at), rememberMost)
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
	s.rate.SetBurst(0)
	if code, _ := s.post(githubPush(global, "refs/heads/main", second)); code != http.StatusTooManyRequests {
		t.Errorf("beyond the rate it was answered %d", code)
	}
}
