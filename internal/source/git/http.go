package git

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"

	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"github.com/flotilla-sh/flotilla/internal/fault"
)

// httpSession gives its connections back when it ends: the next poll is
// usually too far away for the server to keep them.
type httpSession struct {
	transport.UploadPackSession
	connections *http.Transport
}

// Close drops the connections.
func (s httpSession) Close() error {
	s.connections.CloseIdleConnections()
	return nil
}

func openHTTP(ctx context.Context, ep *transport.Endpoint, c Credentials, t TLS) (session, error) {
	if len(c.PrivateKey) > 0 {
		return nil, wrongSecret(ep.Protocol, SecretTypeBasicAuth)
	}
	config, err := tlsConfig(t)
	if err != nil {
		return nil, err
	}
	connections := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: config, ForceAttemptHTTP2: true}
	if c.App != nil {
		c.Username = appUser
		if c.Password, err = c.App.token(ctx, &http.Client{Transport: connections}, ep); err != nil {
			connections.CloseIdleConnections()
			return nil, err
		}
	}
	client := githttp.NewClient(&http.Client{Transport: connections})
	var auth transport.AuthMethod
	if c.Username != "" || c.Password != "" {
		auth = &githttp.BasicAuth{Username: c.Username, Password: c.Password}
	}
	s, err := client.NewUploadPackSession(ep, auth)
	if err != nil {
		return nil, err
	}
	return httpSession{s, connections}, nil
}

func tlsConfig(t TLS) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: t.InsecureSkipTLSVerify} //nolint:gosec // asked for by the user
	if len(t.CABundle) == 0 {
		return config, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(t.CABundle) {
		return nil, fault.Stall(ReasonInvalidCABundle, errors.New("caBundle holds no PEM certificate; give the certificate "+
			"of the authority that signed the Git server's, as -----BEGIN CERTIFICATE----- blocks"))
	}
	config.RootCAs = pool
	return config, nil
}
