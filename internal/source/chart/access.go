package chart

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/flotilla-sh/flotilla/internal/digest"
	"github.com/flotilla-sh/flotilla/internal/fault"
)

// Access is how servers of charts are reached: whom to trust, and credentials
// for some of them.
type Access struct {
	// Username and Password, or Token, are for http, https and OCI; a token is
	// sent as a bearer.
	Username, Password, Token string
	// PrivateKey and KnownHosts are for Git over SSH.
	PrivateKey, KnownHosts []byte
	// URLs matches the URLs that the credentials are for; nil for none.
	URLs *regexp.Regexp

	// CACerts are trusted beside the system's authorities; PEM.
	CACerts []byte
	// Insecure accepts any certificate, PlainHTTP asks OCI registries without
	// TLS.
	Insecure, PlainHTTP bool

	// Keyring holds the OpenPGP keys one of which must have signed each chart;
	// nothing is verified where it is empty.
	Keyring []byte
	// CosignKeys are public keys, as PEM, one of which must have signed each
	// chart as cosign does. Only charts in OCI registries can be signed so.
	CosignKeys []byte
}

// URLPattern compiles helmRepoURLRegex: it matches whole URLs. It is nil where
// the text is empty.
func URLPattern(text string) (*regexp.Regexp, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // no pattern matches nothing
	}
	pattern, err := regexp.Compile("^(?:" + text + ")$")
	if err != nil {
		return nil, fault.Stall("InvalidHelmRepoURLRegex", fmt.Errorf("helmRepoURLRegex is no regular expression: %w", err))
	}
	return pattern, nil
}

// anonymous tells whether there are no credentials.
func (a Access) anonymous() bool {
	return a.Username == "" && a.Password == "" && a.Token == "" && len(a.PrivateKey) == 0
}

// withoutCredentials is what is left for servers that must not see them.
func (a Access) withoutCredentials() Access {
	a.Username, a.Password, a.Token, a.PrivateKey = "", "", "", nil
	return a
}

// at is the access to a URL that a user or a chart names: with credentials only
// where the pattern matches.
func (a Access) at(url string) Access {
	if a.URLs == nil || !a.URLs.MatchString(url) {
		return a.withoutCredentials()
	}
	return a
}

// identity tells accesses apart whose answers may differ. It is a key for maps
// and directories, not for display.
func (a Access) identity() string {
	return digest.Of([]byte(a.Username), []byte(a.Password), []byte(a.Token), a.PrivateKey, a.KnownHosts, a.CACerts, a.Keyring, a.CosignKeys,
		strconv.AppendBool(nil, a.Insecure), strconv.AppendBool(nil, a.PlainHTTP))
}

// Verifies tells whether charts must be signed. What was taken with another access
// is then not to be trusted.
func (a Access) Verifies() bool { return len(a.Keyring) > 0 || len(a.CosignKeys) > 0 }

// Identity tells apart all that is to be kept apart, the pattern included.
func (a Access) Identity() string {
	pattern := ""
	if a.URLs != nil {
		pattern = a.URLs.String()
	}
	return digest.Of([]byte(a.identity()), []byte(pattern))
}

func (a Access) tls() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: a.Insecure} //nolint:gosec // where its owner asks for it
	if len(a.CACerts) == 0 {
		return config, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(a.CACerts) {
		return nil, fault.Stall("InvalidCABundle", errors.New("the certificates for servers of charts hold no PEM certificate: give that of the authority, as -----BEGIN CERTIFICATE----- blocks"))
	}
	config.RootCAs = pool
	return config, nil
}
