package webhook

import (
	"net"
	"net/url"
	"strings"
)

// otherNames are names under which well-known hosts serve SSH on the port of
// HTTPS.
var otherNames = map[string]string{
	"ssh.github.com":       "github.com",
	"altssh.gitlab.com":    "gitlab.com",
	"altssh.bitbucket.org": "bitbucket.org",
}

// place is what all spellings of a repository's URL have in common: host and
// path in small letters, without scheme, login, port and ".git". It is empty
// where there is no host or path. Two repositories can share one; a webhook for
// one then makes us look at the other in vain.
func place(address string) string {
	host, path := divide(strings.TrimSpace(address))
	host = strings.ToLower(strings.Trim(host, "[]"))
	if name, ok := otherNames[host]; ok {
		host = name
	}
	if plain, err := url.PathUnescape(path); err == nil {
		path = plain
	}
	path = strings.Trim(strings.ToLower(path), "/")
	path = strings.Trim(strings.TrimSuffix(path, ".git"), "/")
	if p, ok := azurePlace(host, path); ok {
		return p
	}
	// Bitbucket Server puts /scm in front where it speaks HTTP.
	path = strings.TrimPrefix(path, "scm/")
	if host == "" || path == "" {
		return ""
	}
	return host + "/" + path
}

// anywhere is the place of a repository whose server is not known.
func anywhere(path string) string { return "*/" + strings.ToLower(path) }

// divide takes host and path out of a URL or of the form user@host:path.
func divide(address string) (host, path string) {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok || strings.ContainsAny(scheme, ":/@") {
		host, path, _ = strings.Cut(address, ":")
		if strings.Contains(host, "/") { // a path
			return "", ""
		}
		return host[strings.LastIndexByte(host, '@')+1:], path
	}
	rest, _, _ = strings.Cut(rest, "#")
	rest, _, _ = strings.Cut(rest, "?")
	host, path, _ = strings.Cut(rest, "/")
	host = host[strings.LastIndexByte(host, '@')+1:]
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return host, path
}

// azurePlace brings the hosts of Azure DevOps together, which has an old and a
// new name and puts the parts of the path in another order for SSH.
func azurePlace(host, path string) (string, bool) {
	parts := strings.Split(path, "/")
	switch {
	case host == "dev.azure.com":
	case host == "ssh.dev.azure.com" || host == "vs-ssh.visualstudio.com":
		if len(parts) == 4 && parts[0] == "v3" {
			return "dev.azure.com/" + strings.Join(parts[1:], "/"), true
		}
		return "", false
	case strings.HasSuffix(host, ".visualstudio.com"):
		parts = append([]string{strings.TrimSuffix(host, ".visualstudio.com")}, parts...)
		if len(parts) > 1 && parts[1] == "defaultcollection" {
			parts = append(parts[:1], parts[2:]...)
		}
	default:
		return "", false
	}
	switch {
	case len(parts) == 4 && parts[2] == "_git":
		return "dev.azure.com/" + parts[0] + "/" + parts[1] + "/" + parts[3], true
	case len(parts) == 3 && parts[1] == "_git": // the repository that a project begins with
		return "dev.azure.com/" + parts[0] + "/" + parts[2] + "/" + parts[2], true
	}
	return "", false
}
