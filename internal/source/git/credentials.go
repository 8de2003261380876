package git

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/flotilla-sh/flotilla/internal/fault"
)

// The types of Secret that hold Git credentials, and their keys.
const (
	SecretTypeBasicAuth = "kubernetes.io/basic-auth"
	SecretTypeSSHAuth   = "kubernetes.io/ssh-auth"

	keyUsername   = "username"
	keyPassword   = "password"
	keyPrivateKey = "ssh-privatekey"
	keyKnownHosts = "known_hosts"

	keyAppID           = "github_app_id"
	keyAppInstallation = "github_app_installation_id"
	keyAppPrivateKey   = "github_app_private_key"
)

// Credentials are a login with password, an SSH key or a GitHub App; the zero
// value is none.
type Credentials struct {
	// Username and Password are for http and https.
	Username, Password string
	// PrivateKey is a PEM private key without a passphrase, for ssh.
	PrivateKey []byte
	// KnownHosts are the host keys to accept, in the format of OpenSSH.
	// There is no way to accept any key.
	KnownHosts []byte
	// App is for GitHub over https.
	App *App
}

// CredentialsFromSecret reads the data of a Secret of the given type. An SSH
// Secret may come without known_hosts where the caller has others to add.
func CredentialsFromSecret(secretType string, data map[string][]byte) (Credentials, error) {
	if isApp(data) {
		return appCredentials(secretType, data)
	}
	switch secretType {
	case SecretTypeBasicAuth:
		return basicCredentials(data)
	case SecretTypeSSHAuth:
		return sshCredentials(data)
	default:
		return Credentials{}, secretError("is of type %q; a Git credential is of type %s (keys %s, %s) or %s (keys %s, %s), "+
			"or of any type with %s, %s and %s of a GitHub App",
			secretType, SecretTypeBasicAuth, keyUsername, keyPassword, SecretTypeSSHAuth, keyPrivateKey, keyKnownHosts,
			keyAppID, keyAppInstallation, keyAppPrivateKey)
	}
}

func basicCredentials(data map[string][]byte) (Credentials, error) {
	if err := needKeys(SecretTypeBasicAuth, data, keyUsername, keyPassword); err != nil {
		return Credentials{}, err
	}
	return Credentials{
		Username: trimLineEnd(data[keyUsername]),
		Password: trimLineEnd(data[keyPassword]),
	}, nil
}

func sshCredentials(data map[string][]byte) (Credentials, error) {
	if err := needKeys(SecretTypeSSHAuth, data, keyPrivateKey); err != nil {
		return Credentials{}, err
	}
	c := Credentials{PrivateKey: data[keyPrivateKey], KnownHosts: data[keyKnownHosts]}
	if _, err := c.signer(); err != nil {
		return Credentials{}, err
	}
	if !c.knowsHosts() {
		return c, nil
	}
	_, err := c.hostKeys()
	return c, err
}

// needKeys names the keys that are missing beside those that are there, since
// a wrong name is the usual reason.
func needKeys(secretType string, data map[string][]byte, keys ...string) error {
	var missing []string
	for _, k := range keys {
		if len(bytes.TrimSpace(data[k])) == 0 {
			missing = append(missing, k)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	var found []string
	for k := range data {
		found = append(found, k)
	}
	slices.Sort(found)
	return secretError("of type %s lacks %s (it has the keys: %s)",
		secretType, strings.Join(missing, " and "), orNone(found))
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// signer parses the private key. The parser's own error is left out: it can
// say nothing of use that is not also about the key's bytes.
func (c Credentials) signer() (ssh.Signer, error) {
	signer, err := ssh.ParsePrivateKey(c.PrivateKey)
	if err == nil {
		return signer, nil
	}
	if _, ok := errors.AsType[*ssh.PassphraseMissingError](err); ok {
		return nil, secretError("has a key %s that is protected by a passphrase; store a key without one", keyPrivateKey)
	}
	return nil, secretError("has a key %s that is not a PEM private key", keyPrivateKey)
}

func (c Credentials) knowsHosts() bool {
	return len(bytes.TrimSpace(c.KnownHosts)) > 0
}

func secretError(format string, args ...any) error {
	return fault.Stall(ReasonInvalidSecret, fmt.Errorf("the credential Secret "+format, args...))
}

// trimLineEnd drops the line end that `kubectl create secret --from-file`
// takes over from the file.
func trimLineEnd(b []byte) string {
	return strings.TrimRight(string(b), "\r\n")
}
