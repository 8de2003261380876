package git

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/flotilla-sh/flotilla/internal/fault"
)

// DefaultBranch is followed where a remote names neither branch nor revision.
const DefaultBranch = "master"

// Remote says where a repository is, what of it is wanted and how to get in.
type Remote struct {
	// URL is an http, https, ssh or git URL, or the scp form user@host:path.
	URL string
	// Branch is the branch to follow.
	Branch string
	// Revision is a tag or a 40-digit commit; it wins over Branch.
	Revision string
	// Credentials open the repository; the zero value is anonymous.
	Credentials Credentials
	// TLS says which servers to trust.
	TLS TLS
	// Mirror turns the URL of a submodule into the one to ask; nil changes none.
	Mirror func(url string) string
	// Keys are those of which one must have signed a commit that is fetched, or
	// the tag that is followed; nil takes any commit.
	Keys *Keys
}

// TLS says which certificates a server may show.
type TLS struct {
	// CABundle is PEM, trusted in addition to the system's authorities.
	CABundle []byte
	// InsecureSkipTLSVerify accepts any certificate.
	InsecureSkipTLSVerify bool
}

// endpoint parses the URL and refuses what a hub must not open, such as its
// own files. Login and password are still in it; see login.
func (r Remote) endpoint() (*transport.Endpoint, error) {
	ep, err := transport.NewEndpoint(strings.TrimSpace(r.URL))
	if err != nil {
		return nil, invalidURL(errors.New("it cannot be parsed"))
	}
	ep.Protocol = strings.ToLower(ep.Protocol)
	switch ep.Protocol {
	case "http", "https", "ssh", "git":
	case "file":
		return nil, invalidURL(errors.New("it is a path on the hub's own disk"))
	default:
		return nil, invalidURL(fmt.Errorf("its scheme %q is not known", ep.Protocol))
	}
	if ep.Host == "" || strings.Trim(ep.Path, "/") == "" {
		return nil, invalidURL(errors.New("it needs a host and a path"))
	}
	return ep, nil
}

func invalidURL(why error) error {
	return fault.Stall(ReasonInvalidURL, fmt.Errorf("the repository URL cannot be used: %w; "+
		"give an https:// or ssh:// URL, or git@host:path", why))
}

// place is the remote's address for messages: no user, no query.
func (r Remote) place() string {
	ep, err := r.endpoint()
	if err != nil {
		return "the repository"
	}
	path, _, _ := strings.Cut(ep.Path, "?")
	host := ep.Host
	if ep.Port > 0 && ep.Port != defaultPort(ep.Protocol) {
		host += ":" + strconv.Itoa(ep.Port)
	}
	return ep.Protocol + "://" + host + "/" + strings.TrimPrefix(path, "/")
}

// hostPort is what to dial.
func hostPort(ep *transport.Endpoint) string {
	port := ep.Port
	if port <= 0 {
		port = defaultPort(ep.Protocol)
	}
	return net.JoinHostPort(strings.Trim(ep.Host, "[]"), strconv.Itoa(port))
}

func defaultPort(protocol string) int {
	switch protocol {
	case "http":
		return 80
	case "https":
		return 443
	case "ssh":
		return 22
	default:
		return 9418
	}
}

// target is what a remote asks for: exactly one of its fields is set.
type target struct {
	branch plumbing.ReferenceName
	tag    plumbing.ReferenceName
	commit string
}

func (r Remote) target() target {
	switch {
	case isCommit(r.Revision):
		return target{commit: strings.ToLower(r.Revision)}
	case strings.HasPrefix(r.Revision, "refs/heads/"):
		return target{branch: plumbing.ReferenceName(r.Revision)}
	case r.Revision != "":
		name := strings.TrimPrefix(r.Revision, "refs/tags/")
		return target{tag: plumbing.NewTagReferenceName(name)}
	default:
		return target{branch: plumbing.NewBranchReferenceName(r.branchOrDefault())}
	}
}

func (r Remote) branchOrDefault() string {
	if r.Branch == "" {
		return DefaultBranch
	}
	return strings.TrimPrefix(r.Branch, "refs/heads/")
}

func isCommit(s string) bool {
	if len(s) != 40 {
		return false
	}
	for _, c := range s {
		if !strings.ContainsRune("0123456789abcdefABCDEF", c) {
			return false
		}
	}
	return true
}

// Ref is the ref that the remote follows, refs/heads/… or refs/tags/…; it is
// empty where Revision is a commit.
func (r Remote) Ref() string {
	t := r.target()
	if t.tag != "" {
		return t.tag.String()
	}
	return t.branch.String()
}
