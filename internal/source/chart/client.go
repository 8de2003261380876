package chart

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// answerWithin is how long a server may take to begin an answer.
const answerWithin = 30 * time.Second

// client asks web servers with one access.
type client struct {
	access Access
	http   *http.Client
}

func newClient(a Access) (*client, error) {
	config, err := a.tls()
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout, transport.TLSClientConfig = answerWithin, config
	return &client{access: a, http: &http.Client{Transport: transport, CheckRedirect: redirect}}, nil
}

func (c *client) close() { c.http.CloseIdleConnections() }

// redirectError is a redirect that is not followed.
type redirectError struct{ why string }

// Error says why.
func (e *redirectError) Error() string { return e.why }

// redirect takes credentials off what leads to another host, port or scheme,
// and never leaves TLS.
func redirect(req *http.Request, via []*http.Request) error {
	first := via[0].URL
	switch {
	case len(via) > 10:
		return &redirectError{"redirects more than ten times"}
	case first.Scheme == "https" && req.URL.Scheme != "https":
		return &redirectError{"redirects to a URL without TLS, which is not followed"}
	case !sameOrigin(first, req.URL):
		req.Header.Del("Authorization")
		req.Header.Del("Cookie")
	}
	// The URL that led here may hold a signature.
	req.Header.Del("Referer")
	return nil
}

func sameOrigin(a, b *url.URL) bool { return a.Scheme == b.Scheme && a.Host == b.Host }

// origin is the scheme and host of a URL.
func origin(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return text
	}
	return u.Scheme + "://" + u.Host
}

// get asks for a URL; with a login only where the access has one. The caller
// closes the body.
func (c *client) get(ctx context.Context, address string, a Access) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, stall(ReasonInvalid, "the URL of a chart cannot be parsed")
	}
	req.Header.Set("User-Agent", "flotilla")
	switch {
	case a.Token != "":
		req.Header.Set("Authorization", "Bearer "+a.Token)
	case a.Username != "" || a.Password != "":
		req.SetBasicAuth(a.Username, a.Password)
	}
	res, err := c.http.Do(req) //nolint:bodyclose // the caller closes it
	if err != nil {
		return nil, explain(ctx, address, err)
	}
	if res.StatusCode != http.StatusOK {
		_ = res.Body.Close()
		return nil, refusal(address, res.StatusCode, a)
	}
	return res, nil
}

// download writes what is at a URL, up to a limit.
func (c *client) download(ctx context.Context, address string, a Access, to io.Writer, limit int64, what string) error {
	res, err := c.get(ctx, address, a)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.ContentLength > limit {
		return tooLarge(what, limit)
	}
	return copyLimited(ctx, to, res.Body, limit, address, what)
}

// copyLimited copies a body, up to a limit.
func copyLimited(ctx context.Context, to io.Writer, from io.Reader, limit int64, address, what string) error {
	n, err := io.Copy(to, io.LimitReader(from, limit+1))
	if err != nil {
		return explain(ctx, address, err)
	}
	if n > limit {
		return tooLarge(what, limit)
	}
	return nil
}

func tooLarge(what string, limit int64) error {
	return stall(ReasonTooLarge, "%s is larger than %s: make it smaller, or raise --chart-max-size of the hub", what, size(limit))
}

func size(n int64) string {
	if n >= 1<<20 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}
