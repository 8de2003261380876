package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
)

// provider is a kind of Git server; its value is the key of its secret.
type provider string

const (
	github          provider = "github"
	gitlab          provider = "gitlab"
	bitbucket       provider = "bitbucket"
	bitbucketServer provider = "bitbucket-server"
	gogs            provider = "gogs" // Gitea and Forgejo too
	azure           provider = "azure"
)

// call is what a request says, whoever has sent it.
type call struct {
	from provider
	// urls are the addresses of the repository.
	urls []string
	// pushes are what was pushed; none for an event that is of no interest.
	pushes []push
	// anywhere is project/name of a repository whose address is not told.
	anywhere string
}

// push is a branch or a tag that has moved.
type push struct {
	// ref is refs/heads/… or refs/tags/….
	ref string
	// commit is what it points to now; empty where it is gone or not told.
	commit string
}

var errUnknown = errors.New("this is no webhook of GitHub, GitLab, Bitbucket, Gitea, Gogs or Azure DevOps: its headers are missing")

// providerOf tells who sends, by headers. Gitea pretends to be Gogs and GitHub
// as well, so it comes first.
func providerOf(h http.Header) (provider, error) {
	for _, sign := range []struct {
		header string
		of     provider
	}{
		{"X-Gitea-Event", gogs},
		{"X-Gogs-Event", gogs},
		{"X-GitHub-Event", github},
		{"X-Gitlab-Event", gitlab},
		{"X-Hook-UUID", bitbucket},
		{"X-Event-Key", bitbucketServer},
		{"X-Vss-Activityid", azure},
		{"X-Vss-Subscriptionid", azure},
	} {
		if h.Get(sign.header) != "" {
			return sign.of, nil
		}
	}
	return "", errUnknown
}

// read understands a request.
func read(h http.Header, body []byte) (call, error) {
	from, err := providerOf(h)
	if err != nil {
		return call{}, err
	}
	text, err := payload(h, body)
	if err != nil {
		return call{}, err
	}
	c := call{from: from}
	parse := map[provider]func(*call, http.Header, []byte) error{
		github: readGitHub, gogs: readGogs, gitlab: readGitLab,
		bitbucket: readBitbucket, bitbucketServer: readBitbucketServer, azure: readAzure,
	}[from]
	if err := parse(&c, h, text); err != nil {
		return call{}, fmt.Errorf("the body is not what %s sends: %w", from, err)
	}
	return c, nil
}

// payload is the JSON of a body, which some servers can send as a form.
func payload(h http.Header, body []byte) ([]byte, error) {
	kind, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	if kind != "application/x-www-form-urlencoded" {
		return body, nil
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, fmt.Errorf("the body is no form: %w", err)
	}
	return []byte(form.Get("payload")), nil
}

// moved is a push, unless the server says that the ref is gone.
func moved(ref, commit string) push {
	for _, c := range commit {
		if c != '0' {
			return push{ref, commit}
		}
	}
	return push{ref: ref}
}

// decode reads JSON; what is not asked for is skipped.
func decode[T any](text []byte) (T, error) {
	var v T
	err := json.Unmarshal(text, &v)
	return v, err
}
