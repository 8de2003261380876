package git

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/flotilla-sh/flotilla/internal/fault"
)

// The reasons of this package's errors, for conditions and events.
const (
	ReasonUnreachable        = "GitUnreachable"
	ReasonUnauthorized       = "GitUnauthorized"
	ReasonUntrusted          = "GitServerUntrusted"
	ReasonHostKeyUnknown     = "HostKeyUnknown"
	ReasonInvalidURL         = "InvalidURL"
	ReasonInvalidSecret      = "InvalidSecret"
	ReasonInvalidCABundle    = "InvalidCABundle"
	ReasonRepositoryNotFound = "RepositoryNotFound"
	ReasonRepositoryEmpty    = "RepositoryEmpty"
	ReasonBranchNotFound     = "BranchNotFound"
	ReasonTagNotFound        = "TagNotFound"
	ReasonCommitNotFound     = "CommitNotFound"
	ReasonCacheDiskFull      = "CacheDiskFull"
)

// How long to leave a server alone that answered but said no. All of this can
// be mended on the server, where the hub sees no change, so none of it is
// stalled; but asking often with a bad credential locks accounts.
const (
	retryRefused = 5 * time.Minute
	retryMissing = time.Minute
)

// explain turns an error of the layers below into one for the person who must
// act, of the right kind.
func explain(ctx context.Context, r Remote, err error) error {
	if fault.KindOf(err) != fault.Transient {
		return err
	}
	if ctx.Err() != nil {
		err = errors.New("no answer in the time allowed")
		if errors.Is(ctx.Err(), context.Canceled) {
			return ctx.Err()
		}
	}
	if full := diskFull(r, err); full != nil {
		return full
	}
	if said := refusal(r, err); said != nil {
		return said
	}
	return unreachable(r, err)
}

// diskFull explains what is no fault of the server. It names no file: those of
// a fetch have another name each time.
func diskFull(r Remote, err error) error {
	if err = cause(err); !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
		return nil
	}
	return fault.Retry(ReasonCacheDiskFull, fmt.Errorf(
		"the disk of the hub's cache is full, so %s cannot be fetched: give --cache-dir more space, or lower --git-cache-size; it will be tried again", r.place()))
}

// refusal explains the errors of servers that answered.
func refusal(r Remote, err error) error {
	if e := identityRefusal(r, err); e != nil {
		return e
	}
	if e := certificateRefusal(r, err); e != nil {
		return e
	}
	if _, ok := errors.AsType[*refusedError](err); ok || errors.Is(err, transport.ErrRepositoryNotFound) {
		return wait(retryRefused, ReasonRepositoryNotFound, "there is no repository at %s, or these credentials may not see it%s; "+
			"check the URL and the credential's access", r.place(), said(r, err))
	}
	if errors.Is(err, transport.ErrEmptyRemoteRepository) {
		return wait(retryMissing, ReasonRepositoryEmpty, "the repository %s is empty; push a commit to it", r.place())
	}
	return statusRefusal(r, err)
}

// identityRefusal explains who did not accept whom.
func identityRefusal(r Remote, err error) error {
	_, badKey := errors.AsType[*sshLoginError](err)
	switch {
	case errors.Is(err, transport.ErrAuthenticationRequired) && r.Credentials.App != nil:
		return wait(retryRefused, ReasonUnauthorized, "the server of %s does not accept the token of the GitHub App; "+
			"check that the App is installed for this repository and may read its contents", r.place())
	case errors.Is(err, transport.ErrAuthenticationRequired) && r.anonymous():
		return wait(retryRefused, ReasonUnauthorized, "the repository %s asks for a login and none is configured; "+
			"name a Secret of type %s in clientSecretName", r.place(), SecretTypeBasicAuth)
	case errors.Is(err, transport.ErrAuthenticationRequired), badKey:
		return wait(retryRefused, ReasonUnauthorized, "the server of %s does not accept the credentials; "+
			"check that they are right and have not expired", r.place())
	case errors.Is(err, transport.ErrAuthorizationFailed):
		return wait(retryRefused, ReasonUnauthorized, "the credentials may not read %s; give them read access there", r.place())
	}
	return nil
}

func (r Remote) anonymous() bool {
	ep, err := r.endpoint()
	return err == nil && ep.User == "" && r.Credentials.Username == "" && r.Credentials.Password == ""
}

// certificateRefusal explains servers that we do not trust.
func certificateRefusal(r Remote, err error) error {
	if e, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return wait(retryRefused, ReasonUntrusted, "the certificate of %s is not trusted: %w; "+
			"put the certificate of its authority into caBundle", r.place(), e.Err)
	}
	if e, ok := errors.AsType[*knownhosts.RevokedError](err); ok {
		return fault.Stall(ReasonUntrusted, fmt.Errorf("the SSH host key of %s is marked as revoked in line %d of %s",
			r.place(), e.Revoked.Line, keyKnownHosts))
	}
	e, ok := errors.AsType[*knownhosts.KeyError](err)
	if ok && len(e.Want) == 0 {
		return fault.Stall(ReasonHostKeyUnknown, fmt.Errorf("%s (in the credential Secret, or else in the hub's ConfigMap known-hosts) has no key for the server of %s; "+
			"add the output of ssh-keyscan for it after checking it against the host's published keys", keyKnownHosts, r.place()))
	}
	if ok {
		return wait(retryRefused, ReasonUntrusted, "the SSH host key of %s is not the one in line %d of %s (in the credential Secret, or else in the hub's ConfigMap known-hosts): "+
			"somebody may be listening in, or the server was set up anew; if so, replace the line", r.place(), e.Want[0].Line, keyKnownHosts)
	}
	return nil
}

// statusRefusal explains HTTP answers without a more exact meaning.
func statusRefusal(r Remote, err error) error {
	answer := httpAnswer(err)
	if answer == nil {
		return nil
	}
	code := answer.StatusCode()
	said := fmt.Errorf("the Git server of %s answered %d %s", r.place(), code, http.StatusText(code))
	if seconds, err := strconv.Atoi(answer.Response.Header.Get("Retry-After")); err == nil && seconds > 0 {
		return fault.Wait(time.Duration(seconds)*time.Second, ReasonUnreachable, fmt.Errorf("%w and asks to wait %d s", said, seconds))
	}
	return transient(fmt.Errorf("%w; it will be asked again", said))
}

// httpAnswer finds the answer inside go-git's wrapper, which does not unwrap.
func httpAnswer(err error) *githttp.Err {
	if u, ok := errors.AsType[*plumbing.UnexpectedError](err); ok {
		err = u.Err
	}
	answer, _ := errors.AsType[*githttp.Err](err)
	return answer
}

func unreachable(r Remote, err error) error {
	host := "the server"
	if ep, err := r.endpoint(); err == nil {
		host = hostPort(ep)
	}
	return transient(fmt.Errorf("cannot reach the Git server %s for %s: %s; "+
		"check the URL and that the hub can get there (DNS, proxy, firewall)", host, r.place(), r.redact(cause(err).Error())))
}

func transient(err error) error {
	return fault.Retry(ReasonUnreachable, err)
}

// cause strips the wrappers that repeat the URL.
func cause(err error) error {
	if u, ok := errors.AsType[*plumbing.UnexpectedError](err); ok {
		err = u.Err
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// said is what a server complained about, in brackets.
func said(r Remote, err error) string {
	e, ok := errors.AsType[*refusedError](err)
	if !ok || e.said == "" {
		return ""
	}
	return " (" + r.redact(e.Error()) + ")"
}

// redact is the last net: texts of servers and libraries are searched for what
// must not be shown.
func (r Remote) redact(text string) string {
	secrets := []string{r.Credentials.Password}
	if ep, err := transport.NewEndpoint(r.URL); err == nil {
		secrets = append(secrets, ep.Password)
		if ep.Protocol != "ssh" {
			secrets = append(secrets, ep.User)
		}
	}
	for _, s := range secrets {
		if s != "" {
			text = strings.ReplaceAll(text, s, "***")
		}
	}
	return text
}

func wait(d time.Duration, reason, format string, args ...any) error {
	return fault.Wait(d, reason, fmt.Errorf(format, args...))
}
