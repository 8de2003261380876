// Package cosigntest signs manifests in tests, as cosign does.
package cosigntest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	_ "crypto/sha256" // the hashes of signatures
	_ "crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/flotilla-sh/flotilla/internal/source/cosign"
)

// Key signs.
type Key struct {
	t      testing.TB
	signer crypto.Signer
	hash   crypto.Hash
	// PEM is the public key.
	PEM []byte
}

// New makes a key of the kind that cosign makes.
func New(t testing.TB) Key { return Of(t, "P-256") }

// Of makes a key of another kind: P-224, P-256, P-384, P-521, RSA, RSA-1024, Ed25519 or
// Ed25519ph, which is Ed25519 over a hash.
func Of(t testing.TB, kind string) Key {
	t.Helper()
	var signer crypto.Signer
	var err error
	hash := crypto.SHA256
	switch kind {
	case "P-256":
		signer, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "P-384":
		hash = crypto.SHA384
		signer, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case "P-521":
		hash = crypto.SHA512
		signer, err = ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	case "P-224":
		signer, err = ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	case "RSA":
		signer, err = rsa.GenerateKey(rand.Reader, 2048)
	case "RSA-1024":
		signer, err = rsa.GenerateKey(rand.Reader, 1024)
	case "Ed25519":
		hash = 0
		_, signer, err = ed25519.GenerateKey(rand.Reader)
	case "Ed25519ph":
		hash = crypto.SHA512
		_, signer, err = ed25519.GenerateKey(rand.Reader)
	default:
		t.Fatalf("there is no kind %q", kind)
	}
	must(t, err)
	public, err := x509.MarshalPKIXPublicKey(signer.Public())
	must(t, err)
	return Key{t: t, signer: signer, hash: hash, PEM: pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Sign signs a message.
func (k Key) Sign(message []byte) []byte {
	k.t.Helper()
	if k.hash != 0 {
		h := k.hash.New()
		_, _ = h.Write(message)
		message = h.Sum(nil)
	}
	signature, err := k.signer.Sign(rand.Reader, message, k.hash)
	must(k.t, err)
	return signature
}

// Payload is what is signed in the first form.
func Payload(of digest.Digest) []byte {
	return fmt.Appendf(nil, `{"critical":{"identity":{"docker-reference":"registry.example.org/charts/app"},"image":{"docker-manifest-digest":%q},"type":"cosign container image signature"},"optional":null}`, of)
}

// SignPayload is the signature of a payload, as it is written into an annotation.
func (k Key) SignPayload(payload []byte) string {
	return base64.StdEncoding.EncodeToString(k.Sign(payload))
}

// Statement is what is signed in the newer form.
func Statement(of digest.Digest, predicate string) []byte {
	return fmt.Appendf(nil, `{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{%q:%q}}],"predicateType":%q,"predicate":{}}`, of.Algorithm(), of.Encoded(), predicate)
}

// Bundle is a signature of a manifest in the newer form.
func (k Key) Bundle(of digest.Digest) []byte {
	return k.BundleOf(Statement(of, cosign.PredicateSignature))
}

// BundleOf is a bundle with a signed statement.
func (k Key) BundleOf(statement []byte) []byte {
	const kind = "application/vnd.in-toto+json"
	signature := k.Sign(fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(kind), kind, len(statement), statement))
	return k.pack("dsseEnvelope", map[string]any{
		"payload": statement, "payloadType": kind, "signatures": []any{map[string]any{"sig": signature, "keyid": ""}},
	})
}

// Message is a bundle with a signature of the manifest itself.
func (k Key) Message(manifest []byte) []byte {
	return k.pack("messageSignature", map[string]any{
		"messageDigest": map[string]any{"algorithm": "SHA2_256", "digest": digest.FromBytes(manifest).Encoded()}, "signature": k.Sign(manifest),
	})
}

func (k Key) pack(field string, content any) []byte {
	k.t.Helper()
	raw, err := json.Marshal(map[string]any{
		"mediaType": cosign.MediaBundle, "verificationMaterial": map[string]any{"publicKey": map[string]any{"hint": "x"}}, field: content,
	})
	must(k.t, err)
	return raw
}
