package chart_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	"helm.sh/helm/v3/pkg/provenance"

	"github.com/flotilla-sh/flotilla/internal/content/registry/registrytest"
	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/source/chart"
	"github.com/flotilla-sh/flotilla/internal/source/chart/charttest"
)

func TestOCI(t *testing.T) {
	server := registrytest.Start(t, true)
	host, _, _ := strings.Cut(server.Reference, "/")
	for _, v := range []string{"1.0.0", "1.2.0+build.7", "2.0.0-rc.1"} {
		charttest.Push(t, host+"/charts/app", registrytest.Username, registrytest.Password, "app", v, charttest.Pack("app", charttest.Chart("app", v)), nil)
	}
	a := pattern(t, "oci://127.0.0.1:[0-9]+/.*")
	a.Username, a.Password, a.PlainHTTP = registrytest.Username, registrytest.Password, true
	f := fetcher(t, nil)
	for name, tt := range map[string]struct {
		want    chart.Want
		version string
	}{
		"latest":     {chart.Want{Chart: "oci://" + host + "/charts/app"}, "1.2.0+build.7"},
		"constraint": {chart.Want{Chart: "oci://" + host + "/charts/app", Version: "~1.0"}, "1.0.0"},
		"exact":      {chart.Want{Chart: "oci://" + host + "/charts/app", Version: "2.0.0-rc.1"}, "2.0.0-rc.1"},
		"a tag":      {chart.Want{Chart: "oci://" + host + "/charts/app:1.0.0"}, "1.0.0"},
		"in repo":    {chart.Want{Repo: "oci://" + host + "/charts", Chart: "app", Version: "1.0.0"}, "1.0.0"},
		"with build": {chart.Want{Repo: "oci://" + host + "/charts/app", Version: "1.2.0+build.7"}, "1.2.0+build.7"},
	} {
		got, err := fetch(t, f, a, tt.want, nil)
		if err != nil || got.Version != tt.version || len(got.Files) != 3 {
			t.Errorf("%s: %+v, %v", name, got, err)
			continue
		}
		if again, err := fetch(t, f, a, tt.want, &chart.Pin{Version: got.Version, Digest: got.Digest}); err != nil || again.Digest != got.Digest {
			t.Errorf("%s, pinned: %v", name, err)
		}
	}
	anonymous, wrong := a, a
	anonymous.URLs, wrong.Password = nil, "guess"
	for name, tt := range map[string]struct {
		access chart.Access
		want   chart.Want
		reason string
	}{
		"no login":    {anonymous, chart.Want{Chart: "oci://" + host + "/charts/app"}, chart.ReasonUnauthorized},
		"wrong login": {wrong, chart.Want{Chart: "oci://" + host + "/charts/app"}, chart.ReasonUnauthorized},
		"no version":  {a, chart.Want{Chart: "oci://" + host + "/charts/app", Version: "9.0.0"}, chart.ReasonNotFound},
		"none fits":   {a, chart.Want{Chart: "oci://" + host + "/charts/app", Version: "^9"}, chart.ReasonNotFound},
		"no chart":    {a, chart.Want{Chart: "oci://" + host + "/charts/none"}, chart.ReasonNotFound},
	} {
		if _, err := fetch(t, f, tt.access, tt.want, nil); fault.ReasonOf(err, "") != tt.reason {
			t.Errorf("%s: got %v, want %s", name, err, tt.reason)
		}
	}
}

func TestSignatures(t *testing.T) {
	entity, err := openpgp.NewEntity("Charts", "", "charts@example.org", nil)
	if err != nil {
		t.Fatal(err)
	}
	other, err := openpgp.NewEntity("Other", "", "other@example.org", nil)
	if err != nil {
		t.Fatal(err)
	}
	public := func(e *openpgp.Entity) []byte {
		var out bytes.Buffer
		if err := e.Serialize(&out); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	sign := func(name string, archive []byte) []byte {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, archive, 0o600); err != nil {
			t.Fatal(err)
		}
		text, err := (&provenance.Signatory{Entity: entity}).ClearSign(file)
		if err != nil {
			t.Fatal(err)
		}
		return []byte(text)
	}
	repo := charttest.Serve(t)
	good, bad := repo.Add("good", "1.0.0"), repo.Add("bad", "1.0.0")
	repo.Put("/good-1.0.0.tgz.prov", sign("good-1.0.0.tgz", good))
	repo.Put("/bad-1.0.0.tgz.prov", sign("bad-1.0.0.tgz", append(bytes.Clone(bad), 'x')))
	repo.Add("unsigned", "1.0.0")
	server := registrytest.Start(t, true)
	host, _, _ := strings.Cut(server.Reference, "/")
	charttest.Push(t, host+"/good", registrytest.Username, registrytest.Password, "good", "1.0.0", good, sign("good-1.0.0.tgz", good))
	charttest.Push(t, host+"/unsigned", registrytest.Username, registrytest.Password, "good", "1.0.0", good, nil)

	for name, tt := range map[string]struct {
		keys   []byte
		want   chart.Want
		reason string
	}{
		"signed":         {public(entity), chart.Want{Repo: repo.URL, Chart: "good"}, ""},
		"of two keys":    {append(public(other), public(entity)...), chart.Want{Repo: repo.URL, Chart: "good"}, ""},
		"another key":    {public(other), chart.Want{Repo: repo.URL, Chart: "good"}, chart.ReasonUnverified},
		"another chart":  {public(entity), chart.Want{Repo: repo.URL, Chart: "bad"}, chart.ReasonUnverified},
		"not signed":     {public(entity), chart.Want{Repo: repo.URL, Chart: "unsigned"}, chart.ReasonUnverified},
		"in Git":         {public(entity), chart.Want{Chart: "git::" + repo.URL + "/x"}, chart.ReasonUnverified},
		"no key":         {[]byte("x"), chart.Want{Repo: repo.URL, Chart: "good"}, "InvalidHelmSecret"},
		"signed, OCI":    {public(entity), chart.Want{Chart: "oci://" + host + "/good"}, ""},
		"another, OCI":   {public(other), chart.Want{Chart: "oci://" + host + "/good"}, chart.ReasonUnverified},
		"unsigned, OCI":  {public(entity), chart.Want{Chart: "oci://" + host + "/unsigned"}, chart.ReasonUnverified},
		"nothing to ask": {nil, chart.Want{Repo: repo.URL, Chart: "unsigned"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := chart.Access{Keyring: tt.keys}
			if strings.HasPrefix(tt.want.Chart, "oci://") {
				a = pattern(t, ".*")
				a.Username, a.Password, a.PlainHTTP, a.Keyring = registrytest.Username, registrytest.Password, true, tt.keys
			}
			if _, err := fetch(t, fetcher(t, nil), a, tt.want, nil); fault.ReasonOf(err, "") != tt.reason {
				t.Errorf("got %v, want %q", err, tt.reason)
			}
		})
	}
}

func TestAccessFromSecret(t *testing.T) {
	a, err := chart.AccessFromSecret(map[string][]byte{"username": []byte("me\n"), "password": []byte("p"), "insecureSkipVerify": []byte("true"), "basicHTTP": []byte("")})
	if err != nil || a.Username != "me" || !a.Insecure || a.PlainHTTP {
		t.Errorf("got %+v, %v", a, err)
	}
	for name, data := range map[string]map[string][]byte{
		"boolean": {"basicHTTP": []byte("hunter2")[:1]}, "certificate": {"cacerts": []byte("hunter2")}, "both": {"username": []byte("u"), "token": []byte("hunter2")},
	} {
		if _, err := chart.AccessFromSecret(data); fault.KindOf(err) != fault.Stalled || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
	paths, err := chart.PathAccessesFromSecret(map[string][]byte{chart.KeyPaths: []byte("apps/web: {username: web}\napps/*: {username: any, sshPrivateKey: a2V5}\n/other/: {username: other, basicHTTP: true}\n")})
	if err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{"apps/web": "web", "apps/db": "any", "apps/db/deep": "", "other": "other", "none": ""} {
		if got := paths.Of(dir); got.Username != want {
			t.Errorf("%s: %q, want %q", dir, got.Username, want)
		}
	}
	if string(paths.Of("apps/db").PrivateKey) != "key" {
		t.Error("base64 is not decoded")
	}
	for name, text := range map[string]string{"no map": "- hunter2", "pattern": "'[': {password: hunter2}", "certificate": "a: {caBundle: hunter2}"} {
		if _, err := chart.PathAccessesFromSecret(map[string][]byte{chart.KeyPaths: []byte(text)}); fault.KindOf(err) != fault.Stalled || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
