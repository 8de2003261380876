package cosign_test

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/flotilla-sh/flotilla/internal/source/cosign"
	"github.com/flotilla-sh/flotilla/internal/source/cosign/cosigntest"
)

var manifest = []byte(`{"schemaVersion":2,"layers":[]}`)

func subject() cosign.Subject {
	return cosign.Subject{Digest: digest.FromBytes(manifest), Manifest: manifest}
}

func keys(t testing.TB, all ...cosigntest.Key) cosign.Keys {
	t.Helper()
	var text []byte
	for _, k := range all {
		text = append(text, k.PEM...)
	}
	parsed, err := cosign.ParseKeys(text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// TestKinds signs with each kind of key in each form.
func TestKinds(t *testing.T) {
	s, other := subject(), cosigntest.New(t)
	for _, kind := range []string{"P-256", "P-384", "P-521", "RSA", "Ed25519", "Ed25519ph"} {
		key := cosigntest.Of(t, kind)
		payload := cosigntest.Payload(s.Digest)
		for form, verify := range map[string]func(cosign.Keys) error{
			"payload":  func(k cosign.Keys) error { return k.Payload(payload, key.SignPayload(payload), s) },
			"envelope": func(k cosign.Keys) error { return k.Bundle(key.Bundle(s.Digest), s) },
			"message":  func(k cosign.Keys) error { return k.Bundle(key.Message(manifest), s) },
		} {
			if err := verify(keys(t, key)); err != nil {
				t.Errorf("%s, %s: %v", kind, form, err)
			}
			if err := verify(keys(t, other, key)); err != nil {
				t.Errorf("%s, %s, the second of two keys: %v", kind, form, err)
			}
			if err := verify(keys(t, other)); !errors.Is(err, cosign.ErrOtherKey) {
				t.Errorf("%s, %s, another key: %v", kind, form, err)
			}
		}
	}
}

// TestMade verifies what the program cosign made.
func TestMade(t *testing.T) {
	raw, err := os.ReadFile("testdata/made.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []struct{ MadeBy, Key, Manifest, Bundle, Payload, Signature string }
	if err := json.Unmarshal(raw, &all); err != nil || len(all) == 0 {
		t.Fatal(err)
	}
	for _, made := range all {
		parsed, err := cosign.ParseKeys([]byte(made.Key))
		if err != nil {
			t.Fatal(err)
		}
		verify := func(k cosign.Keys, manifest string) error {
			s := cosign.Subject{Digest: digest.FromString(manifest), Manifest: []byte(manifest)}
			if made.Bundle != "" {
				return k.Bundle([]byte(made.Bundle), s)
			}
			return k.Payload([]byte(made.Payload), made.Signature, s)
		}
		check(t, made.MadeBy, verify(parsed, made.Manifest), "")
		check(t, made.MadeBy, verify(parsed, made.Manifest+" "), "another manifest")
		check(t, made.MadeBy, verify(keys(t, cosigntest.New(t)), made.Manifest), "another key")
	}
}

func TestPayload(t *testing.T) {
	s, key := subject(), cosigntest.New(t)
	right, wrong := cosigntest.Payload(s.Digest), cosigntest.Payload(digest.FromString("another"))
	elsewhere := bytes.Replace(right, []byte("cosign container image"), []byte("atomic container"), 1)
	for name, tt := range map[string]struct {
		payload   []byte
		signature string
		err       string
	}{
		"right":            {right, key.SignPayload(right), ""},
		"another manifest": {wrong, key.SignPayload(wrong), "another manifest"},
		"changed":          {append(bytes.Clone(right), ' '), key.SignPayload(right), "another key"},
		"another type":     {elsewhere, key.SignPayload(elsewhere), "not a signature"},
		"no JSON":          {[]byte("x"), key.SignPayload([]byte("x")), "damaged"},
		"another JSON":     {[]byte(`{"critical":[]}`), key.SignPayload([]byte(`{"critical":[]}`)), "damaged"},
		"nothing signed":   {[]byte("{}"), key.SignPayload([]byte("{}")), "not a signature"},
		"no signature":     {right, "", "damaged"},
		"no base64":        {right, "%%", "damaged"},
		"of the manifest":  {right, key.SignPayload(manifest), "another key"},
	} {
		check(t, name, keys(t, key).Payload(tt.payload, tt.signature, s), tt.err)
	}
}

func TestBundle(t *testing.T) {
	s, key := subject(), cosigntest.New(t)
	right := string(key.Bundle(s.Digest))
	another := digest.FromString("another")
	for name, tt := range map[string]struct{ data, err string }{
		"right":                   {right, ""},
		"a name of a key":         {strings.Replace(right, `"keyid":""`, `"keyid":"hint"`, 1), ""},
		"an older name":           {strings.Replace(right, "bundle.v0.3+json", "bundle+json;version=0.3", 1), ""},
		"another manifest":        {string(key.Bundle(another)), "another manifest"},
		"message of another":      {string(key.Message([]byte("another"))), "another key"},
		"another predicate":       {string(key.BundleOf(cosigntest.Statement(s.Digest, "https://slsa.dev/provenance/v1"))), "not a signature"},
		"no subject":              {string(key.BundleOf([]byte(`{"_type":"https://in-toto.io/Statement/v1","predicateType":"https://sigstore.dev/cosign/sign/v1"}`))), "another manifest"},
		"no statement":            {string(key.BundleOf([]byte("x"))), "damaged"},
		"another statement":       {string(key.BundleOf([]byte("{}"))), "not a signature"},
		"another kind of payload": {strings.Replace(right, "in-toto+json", "other+json", 1), "not known"},
		"another bundle":          {strings.Replace(right, "v0.3", "v9.9", 1), "not known"},
		"both":                    {strings.Replace(right, `"dsseEnvelope"`, `"messageSignature":{"signature":"eA=="},"dsseEnvelope"`, 1), "damaged"},
		"neither":                 {strings.Replace(right, `"dsseEnvelope"`, `"other"`, 1), "damaged"},
		"no signatures":           {strings.Replace(right, `"signatures"`, `"other"`, 1), "another key"},
		"too many signatures":     {strings.Replace(right, `"signatures":[`, `"signatures":[`+strings.Repeat(`{"sig":"eA=="},`, 50), 1), "51 signatures"},
		"keyless":                 {strings.Replace(string(cosigntest.New(t).Bundle(s.Digest)), `"publicKey"`, `"certificate"`, 1), "keyless"},
		"no JSON":                 {"x", "damaged"},
		"nothing":                 {"", "damaged"},
	} {
		check(t, name, keys(t, key).Bundle([]byte(tt.data), s), tt.err)
	}
}

func check(t *testing.T, name string, err error, want string) {
	t.Helper()
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("%s: got %v, want %q", name, err, want)
	}
}

func TestParseKeys(t *testing.T) {
	key := cosigntest.New(t)
	block := func(kind string, data []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}) }
	for name, tt := range map[string]struct {
		text []byte
		err  string
	}{
		"one":           {key.PEM, ""},
		"spaces":        {[]byte("\n " + string(key.PEM) + "\n\n"), ""},
		"none":          {[]byte(" \n"), "no public key"},
		"no PEM":        {[]byte("hunter2"), "not PEM"},
		"PEM and more":  {append(bytes.Clone(key.PEM), "hunter2"...), "not PEM"},
		"a private key": {block("ENCRYPTED SIGSTORE PRIVATE KEY", []byte("hunter2")), "PRIVATE KEY"},
		"garbage":       {block("PUBLIC KEY", []byte("hunter2")), "cannot be parsed"},
		"a weak curve":  {cosigntest.Of(t, "P-224").PEM, "too weak"},
		"weak RSA":      {cosigntest.Of(t, "RSA-1024").PEM, "1024 bits"},
		"too many":      {bytes.Repeat(key.PEM, cosign.MaxKeys+1), "at most"},
	} {
		_, err := cosign.ParseKeys(tt.text)
		check(t, name, err, tt.err)
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error repeats what is there: %v", name, err)
		}
	}
}

// FuzzVerify looks for anything that is accepted without having been signed, and
// for panics.
func FuzzVerify(f *testing.F) {
	s, key := subject(), cosigntest.New(f)
	payload := cosigntest.Payload(s.Digest)
	trusted, foreign := keys(f, key), keys(f, cosigntest.New(f))
	for _, seed := range [][]byte{payload, key.Bundle(s.Digest), key.Message(manifest), []byte("{}"), []byte(`{"mediaType":"x","dsseEnvelope":{"signatures":[null]}}`)} {
		f.Add(seed, key.SignPayload(payload))
		f.Add(seed, "MAA=")
	}
	f.Fuzz(func(t *testing.T, data []byte, signature string) {
		if foreign.Payload(data, signature, s) == nil || foreign.Bundle(data, s) == nil {
			t.Error("accepted by a key that has signed nothing")
		}
		if trusted.Payload(data, signature, s) == nil && !bytes.Equal(data, payload) {
			t.Errorf("accepted: %q", data)
		}
		_ = trusted.Bundle(data, s)
		_, _ = cosign.ParseKeys(data)
	})
}
