package git

import (
	"context"
	"net/url"
	"strings"
	"testing"
)

func TestPlaceShowsNoUserAndNoQuery(t *testing.T) {
	for given, want := range map[string]string{
		"https://user:pw@example.com/a/b.git":       "https://example.com/a/b.git",
		"https://token@example.com:8443/a.git?t=pw": "https://example.com:8443/a.git",
		"HTTPS://example.com:443/a.git":             "https://example.com/a.git",
		"git@example.com:org/a.git":                 "ssh://example.com/org/a.git",
		"ssh://git@example.com:2222/org/a.git":      "ssh://example.com:2222/org/a.git",
		"":                                          "the repository",
	} {
		if got := (Remote{URL: given}).place(); got != want {
			t.Errorf("%q is shown as %q, want %q", given, got, want)
		}
	}
}

// Whatever stands in a URL, no error shows its password.
func FuzzErrorsShowNoPassword(f *testing.F) {
	const password = "hunter2-s3cr3t"
	for _, seed := range []string{"example.com/x", "exa mple/x", "[::1", "[::1]:x/y", "h:99999/x", "/", "h/%zz", "h/x?y#z"} {
		f.Add(true, "user", seed)
		f.Add(false, "", seed)
	}
	f.Fuzz(func(t *testing.T, https bool, user, rest string) {
		scheme := "ssh://"
		if https {
			scheme = "https://"
		}
		r := Remote{URL: scheme + user + ":" + password + "@" + rest}
		if u, err := url.Parse(r.URL); err == nil {
			if p, _ := u.User.Password(); p != password {
				t.Skip("the password is not in its place")
			}
		} else if strings.ContainsAny(user, "/?#@") {
			t.Skip("the password is not in its place")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := Resolve(ctx, r)
		if err == nil || strings.Contains(err.Error(), password) || strings.Contains(r.place(), password) {
			t.Errorf("%v, %s", err, r.place())
		}
	})
}
