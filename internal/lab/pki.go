package lab

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// validity is longer than any lab lives.
const validity = 365 * 24 * time.Hour

// serviceIP is the first address of the service range: the API server's own.
const (
	serviceRange = "10.96.0.0/16"
	serviceIP    = "10.96.0.1"
)

// authority is the certificate authority of one cluster.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// keyPair is a certificate and its key, PEM encoded.
type keyPair struct{ cert, key []byte }

// newAuthority makes a CA and stores its certificate as dir/ca.crt, and a key
// for signing service account tokens as dir/sa.key.
func newAuthority(dir, cluster string) (*authority, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "flotilla lab " + cluster},
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	ca := &authority{dir: dir}
	pair, err := ca.sign(template)
	if err != nil {
		return nil, err
	}
	if err := ca.store("ca", keyPair{cert: pair.cert}); err != nil {
		return nil, err
	}
	tokens, err := newKey()
	if err != nil {
		return nil, err
	}
	encoded, err := encodeKey(tokens)
	if err != nil {
		return nil, err
	}
	return ca, ca.store("sa", keyPair{key: encoded})
}

// server issues the API server's certificate, as dir/apiserver.{crt,key}.
func (a *authority) server() error {
	pair, err := a.sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		IPAddresses: []net.IP{net.ParseIP("127.0.0.1"), net.ParseIP(serviceIP)},
	})
	if err != nil {
		return err
	}
	return a.store("apiserver", pair)
}

// client issues a certificate for a user in a group.
func (a *authority) client(user, group string) (keyPair, error) {
	return a.sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: []string{group}},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// pem returns the certificate that clients trust.
func (a *authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// sign makes a key and a certificate for it; the first one is the
// authority's own.
func (a *authority) sign(template *x509.Certificate) (keyPair, error) {
	key, err := newKey()
	if err != nil {
		return keyPair{}, err
	}
	template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return keyPair{}, err
	}
	// Clocks of virtual machines may differ a little from one another.
	template.NotBefore = time.Now().Add(-time.Minute)
	template.NotAfter = time.Now().Add(validity)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return keyPair{}, err
	}
	if a.cert == nil {
		a.key = key
		if a.cert, err = x509.ParseCertificate(der); err != nil {
			return keyPair{}, err
		}
	}
	encoded, err := encodeKey(key)
	return keyPair{cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key: encoded}, err
}

// store writes the halves of pair that are there.
func (a *authority) store(name string, pair keyPair) error {
	for suffix, data := range map[string][]byte{".crt": pair.cert, ".key": pair.key} {
		if data == nil {
			continue
		}
		if err := os.WriteFile(filepath.Join(a.dir, name+suffix), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func newKey() (*ecdsa.PrivateKey, error) {
	return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}
