package chart

import (
	"fmt"
	"slices"
	"strings"
)

// Mirrors says where the hub asks for charts and repositories in place of what
// is named: the longest
// matching beginning of a URL is replaced.
type Mirrors map[string]string

// ParseMirrors reads upstream=mirror pairs.
func ParseMirrors(pairs []string) (Mirrors, error) {
	m := Mirrors{}
	for _, pair := range pairs {
		from, to, ok := strings.Cut(pair, "=")
		from, to = strings.TrimRight(strings.TrimSpace(from), "/"), strings.TrimRight(strings.TrimSpace(to), "/")
		if !ok || !strings.Contains(from, "://") || !strings.Contains(to, "://") {
			return nil, fmt.Errorf("%q is no pair of URLs: write upstream=mirror, such as https://charts.example.org=https://mirror.internal/charts", pair)
		}
		if (strings.HasPrefix(from, "oci://")) != (strings.HasPrefix(to, "oci://")) {
			return nil, fmt.Errorf("%q: an OCI registry can only be mirrored by another", pair)
		}
		m[from] = to
	}
	return m, nil
}

// Of returns the URL to ask in place of another.
func (m Mirrors) Of(url string) string {
	var matching []string
	for from := range m {
		rest, ok := strings.CutPrefix(url, from)
		if ok && (rest == "" || strings.ContainsAny(rest[:1], "/?:@")) {
			matching = append(matching, from)
		}
	}
	if len(matching) == 0 {
		return url
	}
	longest := slices.MaxFunc(matching, func(a, b string) int { return len(a) - len(b) })
	return m[longest] + strings.TrimPrefix(url, longest)
}
