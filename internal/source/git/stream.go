package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
)

// stream is a session over one connection that both sides keep open, as ssh
// and git have it.
type stream struct {
	in    io.Writer
	out   io.Reader
	close func() error
	// complaint is what the server said beside the protocol, if anything.
	complaint func() string
}

// refusedError is the end of a stream before any refs: what a server does that
// has no such repository, or none for this login.
type refusedError struct{ said string }

// Error repeats what the server said.
func (e *refusedError) Error() string {
	if e.said == "" {
		return "the server closed the connection"
	}
	return "the server said: " + e.said
}

// AdvertisedReferencesContext reads the refs. The context was bound to the
// connection when it was dialled.
func (s *stream) AdvertisedReferencesContext(context.Context) (*packp.AdvRefs, error) {
	refs := packp.NewAdvRefs()
	err := refs.Decode(s.out)
	if errors.Is(err, packp.ErrEmptyAdvRefs) || err == nil && refs.IsEmpty() {
		return nil, transport.ErrEmptyRemoteRepository
	}
	if said, ok := errors.AsType[*pktline.ErrorLine](err); ok {
		return nil, &refusedError{said.Text}
	}
	if errors.Is(err, packp.ErrEmptyInput) {
		return nil, &refusedError{s.complaint()}
	}
	if err != nil {
		return nil, err
	}
	transport.FilterUnsupportedCapabilities(refs.Capabilities)
	return refs, nil
}

// UploadPack asks for a pack in one go: wants, all haves, done.
func (s *stream) UploadPack(_ context.Context, req *packp.UploadPackRequest) (*packp.UploadPackResponse, error) {
	if err := req.Validate(); err != nil {
		return nil, err
	}
	if err := req.UploadRequest.Encode(s.in); err != nil {
		return nil, err
	}
	if err := req.UploadHaves.Encode(s.in, false); err != nil {
		return nil, err
	}
	if err := pktline.NewEncoder(s.in).EncodeString("done\n"); err != nil {
		return nil, err
	}
	res := packp.NewUploadPackResponse(req)
	return res, res.Decode(io.NopCloser(s.out))
}

// Close ends the connection.
func (s *stream) Close() error { return s.close() }

// dialTCP connects and ties the connection's life to ctx.
func dialTCP(ctx context.Context, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	return boundConn{conn, stop}, nil
}

type boundConn struct {
	net.Conn
	unbind func() bool
}

// Close also forgets the context.
func (c boundConn) Close() error {
	c.unbind()
	return c.Conn.Close()
}

// dialGit speaks the git protocol, which knows neither login nor encryption.
func dialGit(ctx context.Context, ep *transport.Endpoint) (session, error) {
	conn, err := dialTCP(ctx, hostPort(ep))
	if err != nil {
		return nil, err
	}
	request := fmt.Sprintf("%s %s\x00host=%s\x00", transport.UploadPackServiceName, ep.Path, ep.Host)
	if err := pktline.NewEncoder(conn).EncodeString(request); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return &stream{in: conn, out: conn, close: conn.Close, complaint: func() string { return "" }}, nil
}
