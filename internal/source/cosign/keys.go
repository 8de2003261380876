// Package cosign verifies signatures of manifests as cosign makes them, by public
// keys alone: no transparency log is asked, and no certificate is trusted. It
// reads nothing but what it is given.
package cosign

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
)

// MaxKeys bounds the keys: each signature is tried with all of them.
const MaxKeys = 16

// minRSA is the number of bits below which an RSA key can be broken.
const minRSA = 2048

// Keys are public keys one of which must have signed.
type Keys []crypto.PublicKey

// ParseKeys reads PEM blocks, of which there must be at least one.
func ParseKeys(text []byte) (Keys, error) {
	var keys Keys
	for rest := bytes.TrimSpace(text); len(rest) > 0; rest = bytes.TrimSpace(rest) {
		block, after := pem.Decode(rest)
		if block == nil {
			return nil, errors.New("what is there is not PEM: give the file cosign.pub that \"cosign generate-key-pair\" writes")
		}
		key, err := parseKey(block)
		if err != nil {
			return nil, fmt.Errorf("public key %d: %w", len(keys)+1, err)
		}
		keys, rest = append(keys, key), after
	}
	if len(keys) == 0 {
		return nil, errors.New("there is no public key: give the file cosign.pub that \"cosign generate-key-pair\" writes")
	}
	if len(keys) > MaxKeys {
		return nil, fmt.Errorf("there are %d public keys, and at most %d are allowed", len(keys), MaxKeys)
	}
	return keys, nil
}

func parseKey(block *pem.Block) (crypto.PublicKey, error) {
	var key any
	var err error
	switch block.Type {
	case "PUBLIC KEY":
		key, err = x509.ParsePKIXPublicKey(block.Bytes)
	case "RSA PUBLIC KEY":
		key, err = x509.ParsePKCS1PublicKey(block.Bytes)
	default:
		return nil, fmt.Errorf("it is a block of the type %.40q, and should be a PUBLIC KEY", block.Type)
	}
	if err != nil {
		return nil, errors.New("it cannot be parsed: it is damaged, or of a kind that is not known")
	}
	switch key := key.(type) {
	case *ecdsa.PublicKey:
		if key.Curve == elliptic.P224() {
			return nil, errors.New("the curve P-224 is too weak: use P-256, as cosign does")
		}
		return key, nil
	case *rsa.PublicKey:
		if key.N.BitLen() < minRSA {
			return nil, fmt.Errorf("it is an RSA key of %d bits, and %d are needed", key.N.BitLen(), minRSA)
		}
		return key, nil
	case ed25519.PublicKey:
		return key, nil
	}
	return nil, errors.New("it is neither of ECDSA, RSA nor Ed25519")
}

// verified tells whether one of the keys has signed a message.
func (k Keys) verified(message, signature []byte) bool {
	for _, key := range k {
		if verified(key, message, signature) {
			return true
		}
	}
	return false
}

// verified tells whether a key has signed a message. The hash is not part of a
// signature: cosign's first form always has SHA-256, the newer one what befits the
// key, and hashes it for Ed25519 too.
func verified(key crypto.PublicKey, message, signature []byte) bool {
	switch key := key.(type) {
	case *ecdsa.PublicKey:
		if ecdsa.VerifyASN1(key, sum(crypto.SHA256, message), signature) {
			return true
		}
		switch key.Curve {
		case elliptic.P384():
			return ecdsa.VerifyASN1(key, sum(crypto.SHA384, message), signature)
		case elliptic.P521():
			return ecdsa.VerifyASN1(key, sum(crypto.SHA512, message), signature)
		}
	case *rsa.PublicKey:
		return rsa.VerifyPKCS1v15(key, crypto.SHA256, sum(crypto.SHA256, message), signature) == nil
	case ed25519.PublicKey:
		return ed25519.Verify(key, message, signature) ||
			ed25519.VerifyWithOptions(key, sum(crypto.SHA512, message), signature, &ed25519.Options{Hash: crypto.SHA512}) == nil
	}
	return false
}

func sum(hash crypto.Hash, message []byte) []byte {
	h := hash.New()
	_, _ = h.Write(message)
	return h.Sum(nil)
}
