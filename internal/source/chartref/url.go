package chartref

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"
)

// splitDir takes //directory out of a URL and leaves the query in it.
func splitDir(text string) (address, dir string) {
	address, query, hasQuery := strings.Cut(text, "?")
	from := 0
	if at := strings.Index(address, "://"); at >= 0 {
		from = at + len("://")
	}
	if at := strings.Index(address[from:], "//"); at >= 0 {
		address, dir = address[:from+at], address[from+at+2:]
	}
	if hasQuery {
		address += "?" + query
	}
	return address, dir
}

// inside is a directory that does not lead out.
func inside(dir string) (string, error) {
	dir = strings.Trim(dir, "/")
	if dir == "" {
		return "", nil
	}
	for part := range strings.SplitSeq(dir, "/") {
		if part == ".." {
			return "", errors.New("the directory behind // in helm.chart leads out: leave .. away")
		}
	}
	return path.Clean(dir), nil
}

// without takes parameters out of a query and leaves the others as they are: a
// server may have signed them in their order.
func without(query string, names ...string) string {
	var kept []string
	for part := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(part, "=")
		drop := part == ""
		for _, n := range names {
			drop = drop || name == n
		}
		if !drop {
			kept = append(kept, part)
		}
	}
	return strings.Join(kept, "&")
}

var errLogin = errors.New("holds a password, which everybody could read in the bundle: put it into the Secret that helmSecretName names, and set helmRepoURLRegex")

// web parses an http or https URL.
func web(text string) (*url.URL, error) {
	u, err := parseURL(text)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("has the scheme %q: use https or oci", u.Scheme)
	}
	return u, nil
}

// parseURL parses a URL and refuses one with a login. Its errors do not repeat
// the URL.
func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("is no URL that can be parsed")
	}
	if u.User != nil {
		return nil, errLogin
	}
	if u.Host == "" {
		return nil, errors.New("is a URL without a host")
	}
	u.Fragment = ""
	return u, nil
}

// Place writes a URL for messages: without login and query.
func Place(text string) string {
	text, _, _ = strings.Cut(text, "?")
	if u, err := url.Parse(text); err == nil && u.User != nil {
		u.User = nil
		return u.String()
	}
	return text
}
