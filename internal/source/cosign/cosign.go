package cosign

import (
	_ "crypto/sha256" // the hashes of signatures
	_ "crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/opencontainers/go-digest"
)

// How signatures are stored beside what they sign.
const (
	// MediaPayload is the type of a layer with what was signed, where the
	// signature itself is the annotation AnnotationSignature.
	MediaPayload        = "application/vnd.dev.cosign.simplesigning.v1+json"
	AnnotationSignature = "dev.cosignproject.cosign/signature"
	// AnnotationCertificate is there where a certificate stands for the key.
	AnnotationCertificate = "dev.sigstore.cosign/certificate"

	// MediaBundle is the type of a referrer, and of its layer, with a signature in
	// the form that Sigstore's programs share.
	MediaBundle = "application/vnd.dev.sigstore.bundle.v0.3+json"
	// AnnotationPredicate tells signatures from other statements about an artifact.
	AnnotationPredicate = "dev.sigstore.bundle.predicateType"
	// PredicateSignature is the predicate of a signature.
	PredicateSignature = "https://sigstore.dev/cosign/sign/v1"
)

const (
	typePayload   = "cosign container image signature"
	typeStatement = "https://in-toto.io/Statement/v1"
	mediaInToto   = "application/vnd.in-toto+json"
	// mediaBundleOld is the same bundle, as it is named in older files.
	mediaBundleOld = "application/vnd.dev.sigstore.bundle+json;version=0.3"

	// maxTogether bounds the signatures in one bundle; there should be one.
	maxTogether = 8
)

// Why something is no signature of a manifest.
var (
	ErrOtherKey = errors.New("made with another key")
	ErrKeyless  = errors.New("made without a key (keyless), which is not verified here")
	errDamaged  = errors.New("damaged")
)

// Subject is the manifest that is to be signed.
type Subject struct {
	Digest   digest.Digest
	Manifest []byte
}

// Tag is the tag of the signatures of a manifest in the first form.
func (s Subject) Tag() string {
	return s.Digest.Algorithm().String() + "-" + s.Digest.Encoded() + ".sig"
}

// Payload verifies a signature of the first form: the payload says what is signed,
// and the signature, in base64, is of the payload.
func (k Keys) Payload(payload []byte, signature string, s Subject) error {
	raw, err := base64.StdEncoding.DecodeString(signature)
	if err != nil || len(raw) == 0 {
		return errDamaged
	}
	if !k.verified(payload, raw) {
		return ErrOtherKey
	}
	var signed struct {
		Critical struct {
			Image struct {
				Digest string `json:"docker-manifest-digest"`
			} `json:"image"`
			Type string `json:"type"`
		} `json:"critical"`
	}
	if json.Unmarshal(payload, &signed) != nil {
		return errDamaged
	}
	if signed.Critical.Type != typePayload {
		return fmt.Errorf("a statement of the type %.80q, not a signature", signed.Critical.Type)
	}
	if signed.Critical.Image.Digest != s.Digest.String() {
		return fmt.Errorf("of another manifest, %.80q", signed.Critical.Image.Digest)
	}
	return nil
}

// bundle is what is read of a Sigstore bundle.
type bundle struct {
	MediaType            string `json:"mediaType"`
	VerificationMaterial struct {
		Certificate *json.RawMessage `json:"certificate"`
	} `json:"verificationMaterial"`
	MessageSignature *struct {
		Signature []byte `json:"signature"`
	} `json:"messageSignature"`
	Envelope *envelope `json:"dsseEnvelope"`
}

// envelope is a DSSE envelope. The names of keys in it are hints, and not signed.
type envelope struct {
	PayloadType string `json:"payloadType"`
	Payload     []byte `json:"payload"`
	Signatures  []struct {
		Signature []byte `json:"sig"`
	} `json:"signatures"`
}

// signed is what signatures in an envelope are of.
func (e *envelope) signed() []byte {
	return fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(e.PayloadType), e.PayloadType, len(e.Payload), e.Payload)
}

// Bundle verifies a signature in a Sigstore bundle.
func (k Keys) Bundle(data []byte, s Subject) error {
	var b bundle
	if json.Unmarshal(data, &b) != nil {
		return errDamaged
	}
	if b.MediaType != MediaBundle && b.MediaType != mediaBundleOld {
		return fmt.Errorf("a bundle of the type %.80q, which is not known", b.MediaType)
	}
	var err error
	switch {
	case b.MessageSignature != nil && b.Envelope == nil:
		if !k.verified(s.Manifest, b.MessageSignature.Signature) {
			err = ErrOtherKey
		}
	case b.Envelope != nil && b.MessageSignature == nil:
		err = k.envelope(b.Envelope, s)
	default:
		return errDamaged
	}
	if errors.Is(err, ErrOtherKey) && b.VerificationMaterial.Certificate != nil {
		return ErrKeyless
	}
	return err
}

// envelope verifies a signed statement about the manifest. Other statements that
// the same key has signed, such as what a scan found, approve of nothing.
func (k Keys) envelope(e *envelope, s Subject) error {
	if e.PayloadType != mediaInToto {
		return fmt.Errorf("a statement of the type %.80q, which is not known", e.PayloadType)
	}
	if len(e.Signatures) > maxTogether {
		return fmt.Errorf("a bundle with %d signatures, and at most %d are looked at", len(e.Signatures), maxTogether)
	}
	signed := e.signed()
	for _, made := range e.Signatures {
		if k.verified(signed, made.Signature) {
			return approves(e.Payload, s)
		}
	}
	return ErrOtherKey
}

// approves judges a statement whose signature is right.
func approves(statement []byte, s Subject) error {
	var said struct {
		Type    string `json:"_type"`
		Subject []struct {
			Digest map[string]string `json:"digest"`
		} `json:"subject"`
		Predicate string `json:"predicateType"`
	}
	if json.Unmarshal(statement, &said) != nil {
		return errDamaged
	}
	if said.Type != typeStatement || said.Predicate != PredicateSignature {
		return fmt.Errorf("a statement of the type %.80q, not a signature", said.Predicate)
	}
	var of []string
	for _, subject := range said.Subject {
		found := subject.Digest[s.Digest.Algorithm().String()]
		if found == s.Digest.Encoded() {
			return nil
		}
		of = append(of, found)
	}
	return fmt.Errorf("of another manifest, %.80q", strings.Join(of, " "))
}
