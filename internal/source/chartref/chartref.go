// Package chartref understands how a chart from elsewhere is named: by a
// repository and a name, as an OCI artifact, by the URL of an archive or by a
// Git repository. It is pure.
package chartref

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strings"

	"github.com/flotilla-sh/flotilla/internal/digest"
)

// Kind says where a chart comes from.
type Kind int

const (
	// Local charts are among the files of the bundle.
	Local Kind = iota
	// Repository is a chart repository with an index.
	Repository
	// OCI is an artifact in an OCI registry.
	OCI
	// Archive is a packed chart, or a packed tree with one in it.
	Archive
	// Git is a directory of a Git repository.
	Git
)

// Ref is the name of a chart, understood.
type Ref struct {
	Kind Kind
	// URL is that of the repository, the artifact (oci://host/path), the archive
	// or the Git repository.
	URL string
	// Chart is the name of the chart in its repository.
	Chart string
	// Version is a version, a constraint or empty for the newest stable one.
	Version string
	// Digest is the digest of an OCI manifest that is wanted.
	Digest string
	// Path is the directory of the chart in an archive or Git repository.
	Path string
	// Revision is the branch, tag or commit of a Git repository; empty for its
	// default branch.
	Revision string
	// Checksum is the SHA-256 of an archive, in hex, where it was given.
	Checksum string
}

// Dir is the directory of a bundle into which a chart from elsewhere is
// unpacked.
func Dir(repo, chart, version string) string {
	return ".chart/" + digest.OfBytes([]byte(chart+":"+repo+":"+version))
}

// scp is user@host:path, as ssh and Git know it.
var scp = regexp.MustCompile(`^[A-Za-z0-9_.-]+@[A-Za-z0-9_.-]+:[^/]`)

// shorthands are hosts that may be named without a scheme.
func shorthands() []string { return []string{"github.com/", "gitlab.com/", "bitbucket.org/"} }

// IsRemote tells whether a chart comes from elsewhere.
func IsRemote(repo, chart string) bool {
	if repo != "" || strings.Contains(chart, "://") || strings.Contains(chart, "::") || scp.MatchString(chart) {
		return true
	}
	_, ok := shorthand(chart)
	return ok
}

// shorthand returns the URL for github.com/owner/name and its like.
func shorthand(chart string) (string, bool) {
	address, query, hasQuery := strings.Cut(chart, "?")
	for _, host := range shorthands() {
		rest, ok := strings.CutPrefix(address, host)
		parts := strings.SplitN(rest, "/", 3)
		if !ok || len(parts) < 2 || parts[0] == "" || parts[1] == "" {
			continue
		}
		out := "https://" + host + parts[0] + "/" + strings.TrimSuffix(parts[1], ".git") + ".git"
		if len(parts) == 3 {
			out += "//" + strings.TrimLeft(parts[2], "/")
		}
		if hasQuery {
			out += "?" + query
		}
		return out, true
	}
	return "", false
}

// Parse understands helm.repo, helm.chart and helm.version.
func Parse(repo, chart, version string) (Ref, error) {
	repo, chart, version = strings.TrimSpace(repo), strings.TrimSpace(chart), strings.TrimSpace(version)
	if !IsRemote(repo, chart) {
		return Ref{Kind: Local, URL: chart, Version: version}, nil
	}
	var ref Ref
	var err error
	switch {
	case repo != "":
		ref, err = inRepository(repo, chart)
	case strings.HasPrefix(chart, "oci://"):
		ref, err = artifact(chart)
	default:
		ref, err = byURL(chart)
	}
	if err != nil {
		return Ref{}, err
	}
	if ref.Version != "" && version != "" && ref.Version != version {
		return Ref{}, fmt.Errorf("helm.chart names the version %s and helm.version %s: leave one of them out", ref.Version, version)
	}
	if version != "" {
		ref.Version = version
	}
	return ref, nil
}

func inRepository(repo, chart string) (Ref, error) {
	if strings.Contains(chart, "://") {
		return Ref{}, errors.New("helm.chart is a URL, and helm.repo is set as well: with helm.repo it is the name of a chart there")
	}
	if strings.HasPrefix(repo, "oci://") {
		if chart != "" && path.Base(repo) != chart {
			repo = strings.TrimRight(repo, "/") + "/" + chart
		}
		return artifact(repo)
	}
	u, err := web(repo)
	if err != nil {
		return Ref{}, fmt.Errorf("helm.repo %w", err)
	}
	if chart == "" {
		return Ref{}, errors.New("helm.repo is set and helm.chart is not: name a chart of the repository")
	}
	return Ref{Kind: Repository, URL: u.String(), Chart: chart}, nil
}

// artifact understands oci://host/path, with :tag or @digest behind it.
func artifact(text string) (Ref, error) {
	u, err := parseURL(text)
	if err != nil {
		return Ref{}, fmt.Errorf("the chart %w", err)
	}
	ref := Ref{Kind: OCI}
	name := strings.Trim(u.Path, "/")
	name, ref.Digest, _ = strings.Cut(name, "@")
	if at := strings.LastIndex(name, ":"); at > strings.LastIndex(name, "/") {
		name, ref.Version = name[:at], name[at+1:]
	}
	if u.Host == "" || name == "" {
		return Ref{}, errors.New("the chart needs a host and a path: oci://registry.example.org/charts/name")
	}
	if ref.Digest != "" && !sha256Digest.MatchString(ref.Digest) {
		return Ref{}, errors.New("the digest of the chart is not sha256: and 64 hex digits")
	}
	ref.URL = "oci://" + u.Host + "/" + name
	return ref, nil
}

var sha256Digest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// byURL understands a Git repository or an archive.
func byURL(chart string) (Ref, error) {
	if expanded, ok := shorthand(chart); ok {
		return inGit(expanded)
	}
	if scheme, rest, ok := strings.Cut(chart, "::"); ok {
		if scheme != "git" {
			return Ref{}, fmt.Errorf("helm.chart begins with %s::, which is not built: Git, OCI registries, chart repositories and archives by https are", scheme)
		}
		if expanded, ok := shorthand(rest); ok {
			rest = expanded
		}
		return inGit(rest)
	}
	scheme, rest, _ := strings.Cut(chart, "://")
	switch {
	case scp.MatchString(chart), scheme == "ssh", scheme == "git":
		return inGit(chart)
	case scheme != "http" && scheme != "https":
		return Ref{}, fmt.Errorf("helm.chart has the scheme %q, which is not built: use https, oci, ssh or a git:: prefix", scheme)
	}
	address, _, _ := strings.Cut(rest, "?")
	repository, _, _ := strings.Cut(address, "//")
	if strings.HasSuffix(repository, ".git") {
		return inGit(chart)
	}
	return packed(chart)
}

// packed understands the URL of an archive.
func packed(chart string) (Ref, error) {
	address, dir := splitDir(chart)
	u, err := web(address)
	if err != nil {
		return Ref{}, fmt.Errorf("helm.chart %w", err)
	}
	ref := Ref{Kind: Archive}
	if ref.Path, err = inside(dir); err != nil {
		return Ref{}, err
	}
	query := u.Query()
	if sum := query.Get("checksum"); sum != "" {
		ref.Checksum = strings.ToLower(strings.TrimPrefix(sum, "sha256:"))
		if !sha256Digest.MatchString("sha256:" + ref.Checksum) {
			return Ref{}, errors.New("?checksum= of helm.chart is not sha256: and 64 hex digits; other kinds are not built")
		}
	}
	u.RawQuery = without(u.RawQuery, "checksum", "archive")
	ref.URL = u.String()
	return ref, nil
}

// inGit understands the URL of a Git repository.
func inGit(chart string) (Ref, error) {
	address, dir := splitDir(chart)
	address, query, _ := strings.Cut(address, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return Ref{}, errors.New("what stands behind ? in helm.chart cannot be parsed")
	}
	if values.Has("sshkey") {
		return Ref{}, errors.New("helm.chart holds a key in ?sshkey=: put it into the Secret that helmSecretName names, as ssh-privatekey")
	}
	ref := Ref{Kind: Git, URL: address, Revision: values.Get("ref")}
	if ref.Path, err = inside(dir); err != nil {
		return Ref{}, err
	}
	if strings.HasPrefix(address, "http://") || strings.HasPrefix(address, "https://") {
		if _, err := web(address); err != nil {
			return Ref{}, fmt.Errorf("helm.chart %w", err)
		}
	}
	if u, err := url.Parse(address); err == nil && u.User != nil {
		if _, secret := u.User.Password(); secret {
			return Ref{}, fmt.Errorf("helm.chart %w", errLogin)
		}
	}
	return ref, nil
}

// String writes a reference for messages.
func (r Ref) String() string {
	out := Place(r.URL)
	if r.Chart != "" {
		out = r.Chart + " of " + out
	}
	if r.Path != "" {
		out += "//" + r.Path
	}
	for _, which := range []string{r.Version, r.Digest, r.Revision} {
		if which != "" {
			out += " (" + which + ")"
		}
	}
	return out
}
