package git

import (
	"context"
	"errors"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/flotilla-sh/flotilla/internal/fault"
)

// session is one conversation with a server: its refs, then at most one pack.
type session interface {
	AdvertisedReferencesContext(context.Context) (*packp.AdvRefs, error)
	UploadPack(context.Context, *packp.UploadPackRequest) (*packp.UploadPackResponse, error)
	Close() error
}

// connect opens a session and reads the refs that the server advertises.
func connect(ctx context.Context, r Remote) (session, *packp.AdvRefs, error) {
	s, err := dial(ctx, r)
	if err != nil {
		return nil, nil, explain(ctx, r, err)
	}
	refs, err := s.AdvertisedReferencesContext(ctx)
	if err != nil {
		_ = s.Close()
		if errors.Is(err, transport.ErrAuthenticationRequired) {
			r.Credentials.App.forget()
		}
		return nil, nil, explain(ctx, r, err)
	}
	return s, refs, nil
}

func dial(ctx context.Context, r Remote) (session, error) {
	ep, err := r.endpoint()
	if err != nil {
		return nil, err
	}
	c := login(ep, r.Credentials)
	switch ep.Protocol {
	case "ssh":
		return dialSSH(ctx, ep, c)
	case "git":
		return dialGit(ctx, ep)
	default:
		return openHTTP(ctx, ep, c, r.TLS)
	}
}

// login takes user and password out of the endpoint, so that no error of the
// layers below can repeat them. Given credentials win over those of the URL.
func login(ep *transport.Endpoint, c Credentials) Credentials {
	if c.Username == "" && c.Password == "" {
		c.Username, c.Password = ep.User, ep.Password
	}
	ep.Password = ""
	if ep.Protocol != "ssh" {
		ep.User = ""
	}
	return c
}

// wrongSecret is the error for a credential of the wrong kind for its URL.
func wrongSecret(protocol, needed string) error {
	return fault.Stall(ReasonInvalidSecret, wrongSecretError{protocol, needed})
}

type wrongSecretError struct{ protocol, needed string }

// Error says which kind of Secret the URL needs.
func (e wrongSecretError) Error() string {
	return "the repository URL is " + e.protocol + ":// and needs a credential Secret of type " + e.needed
}
