package chart_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/flotilla-sh/flotilla/internal/content/registry/registrytest"
	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/source/chart"
	"github.com/flotilla-sh/flotilla/internal/source/chart/charttest"
	"github.com/flotilla-sh/flotilla/internal/source/cosign"
	"github.com/flotilla-sh/flotilla/internal/source/cosign/cosigntest"
)

// signedWorld is a registry with charts, one key that is asked for and another.
type signedWorld struct {
	*testing.T
	host       string
	key, other cosigntest.Key
	archive    []byte
}

// chart pushes a chart into a repository of its own.
func (w *signedWorld) chart(name string) (*charttest.Repository, ocispec.Descriptor) {
	w.Helper()
	repo := charttest.OpenRepository(w, w.host+"/"+name, registrytest.Username, registrytest.Password)
	return repo, repo.Push("app", "1.0.0", w.archive, nil)
}

func (w *signedWorld) payload(by cosigntest.Key, of digest.Digest) charttest.Signed {
	payload := cosigntest.Payload(of)
	return charttest.Signed{Payload: payload, Signature: by.SignPayload(payload)}
}

func (w *signedWorld) access(keys ...cosigntest.Key) chart.Access {
	w.Helper()
	a := pattern(w, ".*")
	a.Username, a.Password, a.PlainHTTP = registrytest.Username, registrytest.Password, true
	for _, k := range keys {
		a.CosignKeys = append(a.CosignKeys, k.PEM...)
	}
	return a
}

func newSignedWorld(t *testing.T) *signedWorld {
	host, _, _ := strings.Cut(registrytest.Start(t, true).Reference, "/")
	return &signedWorld{T: t, host: host, key: cosigntest.New(t), other: cosigntest.New(t), archive: charttest.Pack("app", charttest.Chart("app", "1.0.0"))}
}

func TestCosign(t *testing.T) {
	w := newSignedWorld(t)
	another := digest.FromString("another")
	tampered := w.payload(w.key, another)
	for name, tt := range map[string]struct {
		sign func(*charttest.Repository, ocispec.Descriptor)
		keys []cosigntest.Key
		err  []string // parts of the error
	}{
		"payload": {sign: func(r *charttest.Repository, m ocispec.Descriptor) { r.Sign(m, w.payload(w.key, m.Digest)) }},
		"the second of two": {sign: func(r *charttest.Repository, m ocispec.Descriptor) {
			r.Sign(m, w.payload(w.other, m.Digest), w.payload(w.key, m.Digest))
		}},
		"two keys": {
			sign: func(r *charttest.Repository, m ocispec.Descriptor) { r.Sign(m, w.payload(w.other, m.Digest)) },
			keys: []cosigntest.Key{w.key, w.other},
		},
		"bundle":  {sign: func(r *charttest.Repository, m ocispec.Descriptor) { r.Refer(m, w.key.Bundle(m.Digest)) }},
		"message": {sign: func(r *charttest.Repository, m ocispec.Descriptor) { r.Refer(m, w.key.Message(r.Manifest(m))) }},
		"a bundle behind another and a payload": {sign: func(r *charttest.Repository, m ocispec.Descriptor) {
			r.Sign(m, w.payload(w.other, m.Digest))
			r.Refer(m, w.other.Bundle(m.Digest), []byte("garbage"), w.key.Bundle(m.Digest))
		}},
		"unsigned": {
			sign: func(*charttest.Repository, ocispec.Descriptor) {},
			err:  []string{"/unsigned 1.0.0 (sha256:", "the key (*.pub)", "the tag sha256-", cosign.MediaBundle, "there is none", "cosign sign --key cosign.key " + w.host + "/unsigned@sha256:"},
		},
		"another key": {
			sign: func(r *charttest.Repository, m ocispec.Descriptor) {
				r.Sign(m, w.payload(w.other, m.Digest))
				r.Refer(m, w.other.Bundle(m.Digest))
			},
			err: []string{"of the 2 that were looked at", "another key"},
		},
		"neither of two keys": {
			sign: func(r *charttest.Repository, m ocispec.Descriptor) { r.Sign(m, w.payload(cosigntest.New(t), m.Digest)) },
			keys: []cosigntest.Key{w.key, w.other},
			err:  []string{"by one of the 2 keys"},
		},
		"another chart": {
			sign: func(r *charttest.Repository, m ocispec.Descriptor) {
				r.Sign(m, w.payload(w.key, another))
				r.Refer(m, w.key.Bundle(another))
			},
			err: []string{"of the 2 that", "another manifest, \"" + another.String()},
		},
		"tampered": {
			sign: func(r *charttest.Repository, m ocispec.Descriptor) {
				r.Sign(m, charttest.Signed{Payload: cosigntest.Payload(m.Digest), Signature: tampered.Signature})
			},
			err: []string{"another key"},
		},
		"garbage": {
			sign: func(r *charttest.Repository, m ocispec.Descriptor) {
				r.Sign(m, charttest.Signed{Payload: []byte("{"), Signature: "%"})
				r.Refer(m, []byte("{"), bytes.Repeat([]byte("x"), 300<<10))
			},
			err: []string{"of the 3 that", "damaged; too large"},
		},
		"too many": {
			sign: func(r *charttest.Repository, m ocispec.Descriptor) {
				junk := make([]charttest.Signed, 33)
				for i := range junk {
					junk[i] = charttest.Signed{Payload: []byte("x"), Signature: "eA=="}
				}
				r.Sign(m, append(junk, w.payload(w.key, m.Digest))...)
			},
			err: []string{"of the 32 that"},
		},
		"many, and a bundle": {sign: func(r *charttest.Repository, m ocispec.Descriptor) {
			junk := make([]charttest.Signed, 33)
			for i := range junk {
				junk[i] = charttest.Signed{Payload: []byte("x"), Signature: "eA=="}
			}
			r.Sign(m, junk...)
			r.Refer(m, w.key.Bundle(m.Digest))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if len(tt.keys) == 0 {
				tt.keys = []cosigntest.Key{w.key}
			}
			path := strings.ReplaceAll(strings.ReplaceAll(name, ",", ""), " ", "-")
			tt.sign(w.chart(path))
			_, err := fetch(t, fetcher(t, nil), w.access(tt.keys...), chart.Want{Chart: "oci://" + w.host + "/" + path, Version: "1.0.0"}, nil)
			if len(tt.err) == 0 {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if fault.ReasonOf(err, "") != chart.ReasonUnverified {
				t.Fatalf("got %v", err)
			}
			for _, part := range tt.err {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("got %v, which does not say %q", err, part)
				}
			}
		})
	}
}

// TestCosignReferrers asks a registry that keeps lists of referrers itself, with
// much else in them.
func TestCosignReferrers(t *testing.T) {
	w := newSignedWorld(t)
	repo, m := w.chart("app")
	other := repo.Refer(m, w.other.Bundle(m.Digest))[0]
	mine := repo.Refer(m, w.key.Bundle(m.Digest))[0]
	other.ArtifactType, other.Annotations = "application/spdx+json", nil
	index := ocispec.Index{MediaType: ocispec.MediaTypeImageIndex, Manifests: slices.Repeat([]ocispec.Descriptor{other}, 100)}
	other.ArtifactType, other.Annotations = cosign.MediaBundle, map[string]string{cosign.AnnotationPredicate: "https://slsa.dev/provenance/v1"}
	index.Manifests = append(append(index.Manifests, slices.Repeat([]ocispec.Descriptor{other}, 100)...), mine)
	index.SchemaVersion = 2
	behind := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: w.host})
	status := http.StatusOK
	front := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v2/app/referrers/"+m.Digest.String() {
			behind.ServeHTTP(out, r)
			return
		}
		out.Header().Set("Content-Type", ocispec.MediaTypeImageIndex)
		out.WriteHeader(status)
		_ = json.NewEncoder(out).Encode(index)
	}))
	t.Cleanup(front.Close)
	want := chart.Want{Chart: "oci://" + strings.TrimPrefix(front.URL, "http://") + "/app", Version: "1.0.0"}
	if _, err := fetch(t, fetcher(t, nil), w.access(w.key), want, nil); err != nil {
		t.Error(err)
	}
	// A server that fails says nothing of signatures.
	status = http.StatusServiceUnavailable
	if _, err := fetch(t, fetcher(t, nil), w.access(w.key), want, nil); fault.ReasonOf(err, "") != chart.ReasonUnreachable {
		t.Errorf("got %v", err)
	}
}

// TestCosignElsewhere has keys of cosign, and charts that come from no registry.
func TestCosignElsewhere(t *testing.T) {
	entity, err := openpgp.NewEntity("Charts", "", "charts@example.org", nil)
	if err != nil {
		t.Fatal(err)
	}
	repo := charttest.Serve(t)
	repo.Add("app", "1.0.0")
	key := cosigntest.New(t)
	a := chart.Access{CosignKeys: key.PEM}
	for _, want := range []chart.Want{{Repo: repo.URL, Chart: "app"}, {Chart: repo.URL + "/app-1.0.0.tgz"}, {Chart: "git::" + repo.URL + "/x"}} {
		if _, err := fetch(t, fetcher(t, nil), a, want, nil); fault.ReasonOf(err, "") != chart.ReasonUnverified || !strings.Contains(err.Error(), "in no OCI registry") {
			t.Errorf("%v: got %v", want, err)
		}
	}
	var public bytes.Buffer
	if err := entity.Serialize(&public); err != nil {
		t.Fatal(err)
	}
	a.Keyring = public.Bytes()
	if _, err := fetch(t, fetcher(t, nil), a, chart.Want{Repo: repo.URL, Chart: "app"}, nil); !strings.Contains(err.Error(), "has no signature (.prov)") {
		t.Errorf("with a keyring: got %v", err)
	}
}

// TestCosignKept fetches a chart without keys, or with others, and then asks for
// what was kept.
func TestCosignKept(t *testing.T) {
	w := newSignedWorld(t)
	repo, m := w.chart("app")
	want := chart.Want{Chart: "oci://" + w.host + "/app", Version: "1.0.0"}
	f := fetcher(t, nil)
	got, err := fetch(t, f, w.access(), want, nil)
	if err != nil {
		t.Fatal(err)
	}
	pin := &chart.Pin{Version: got.Version, Digest: got.Digest}
	if _, err := fetch(t, f, w.access(w.key), want, pin); fault.ReasonOf(err, "") != chart.ReasonUnverified {
		t.Errorf("kept from before there was a key: got %v", err)
	}
	repo.Sign(m, w.payload(w.other, m.Digest))
	if _, err := fetch(t, f, w.access(w.other), want, pin); err != nil {
		t.Error(err)
	}
	if _, err := fetch(t, f, w.access(w.key), want, pin); fault.ReasonOf(err, "") != chart.ReasonUnverified {
		t.Errorf("kept with another key: got %v", err)
	}
	repo.Sign(m, w.payload(w.key, m.Digest))
	if again, err := fetch(t, f, w.access(w.key), want, pin); err != nil || again.Digest != got.Digest {
		t.Error(err)
	}
	// What was verified once is not asked for again.
	repo.Sign(m)
	if _, err := fetch(t, f, w.access(w.key), want, pin); err != nil {
		t.Error(err)
	}
}

func TestCosignKeysFromSecret(t *testing.T) {
	one, two := cosigntest.New(t), cosigntest.New(t)
	a, err := chart.AccessFromSecret(map[string][]byte{"cosign.pub": one.PEM, "next.pub": two.PEM})
	if keys, parseErr := cosign.ParseKeys(a.CosignKeys); err != nil || parseErr != nil || len(keys) != 2 {
		t.Errorf("got %d keys, %v, %v", len(keys), err, parseErr)
	}
	if a, err := chart.AccessFromSecret(nil); err != nil || a.Verifies() {
		t.Errorf("got %+v, %v", a, err)
	}
	for _, data := range []string{"", " ", "hunter2"} {
		if _, err := chart.AccessFromSecret(map[string][]byte{"cosign.pub": []byte(data)}); fault.KindOf(err) != fault.Stalled || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: got %v", data, err)
		}
	}
	entries, err := json.Marshal(map[string]any{"app": map[string]string{"cosignPub": string(one.PEM)}})
	if err != nil {
		t.Fatal(err)
	}
	paths, err := chart.PathAccessesFromSecret(map[string][]byte{chart.KeyPaths: entries})
	if err != nil || !paths.Of("app").Verifies() || paths.Of("other").Verifies() {
		t.Errorf("by path: %v", err)
	}
	if (chart.Access{CosignKeys: one.PEM}).Identity() == (chart.Access{CosignKeys: two.PEM}).Identity() {
		t.Error("accesses with different keys share what they fetch")
	}
}
