package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"strings"
)

// The keys of a Secret for webhooks are the names of the providers, but for
// Azure DevOps, which sends a login.
const (
	keyAzureUser     = "azure-username"
	keyAzurePassword = "azure-password"
)

// authentic tells whether a request was sent by somebody who knows the secret.
func authentic(from provider, h http.Header, body []byte, secret map[string][]byte) bool {
	key := strings.TrimRight(string(secret[string(from)]), "\r\n")
	switch from {
	case github:
		return signed(h.Get("X-Hub-Signature-256"), body, key)
	case gogs:
		return signed(h.Get("X-Gitea-Signature"), body, key) || signed(h.Get("X-Gogs-Signature"), body, key)
	case bitbucketServer:
		return signed(h.Get("X-Hub-Signature"), body, key)
	case bitbucket:
		// A secret of a hook came late to Bitbucket; before that its id was one.
		return signed(h.Get("X-Hub-Signature"), body, key) || equal(bare(h.Get("X-Hook-UUID")), bare(key))
	case gitlab:
		return equal(h.Get("X-Gitlab-Token"), key)
	case azure:
		user, password, ok := (&http.Request{Header: h}).BasicAuth()
		wantUser := strings.TrimRight(string(secret[keyAzureUser]), "\r\n")
		wantPassword := strings.TrimRight(string(secret[keyAzurePassword]), "\r\n")
		return ok && equal(password, wantPassword) && subtle.ConstantTimeCompare([]byte(user), []byte(wantUser)) == 1
	}
	return false
}

// signed checks an HMAC with SHA-256, in hex. An empty key signs nothing.
func signed(signature string, body []byte, key string) bool {
	mac, err := hex.DecodeString(strings.TrimPrefix(signature, "sha256="))
	if err != nil || key == "" {
		return false
	}
	want := hmac.New(sha256.New, []byte(key))
	want.Write(body)
	return hmac.Equal(mac, want.Sum(nil))
}

// equal compares in constant time; nothing equals an empty secret.
func equal(got, want string) bool {
	return want != "" && subtle.ConstantTimeCompare([]byte(got), []byte(want)) == 1
}

func bare(uuid string) string { return strings.ToLower(strings.Trim(uuid, "{}")) }
