package chart

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/source/cosign"
)

// Keys of a Secret with the access to servers of charts.
const (
	keyUsername, keyPassword, keyToken = "username", "password", "token"
	keyPrivateKey, keyKnownHosts       = "ssh-privatekey", "known_hosts"
	keyCACerts, keyKeyring             = "cacerts", "keyring"
	keyInsecure, keyPlainHTTP          = "insecureSkipVerify", "basicHTTP"

	// KeyPaths is the key of a Secret with one access for each path.
	KeyPaths = "secrets-path.yaml"

	// suffixCosign is how keys with public keys of cosign end, such as cosign.pub.
	suffixCosign = ".pub"
)

// reasonSecret is the reason of an error about a Secret.
const reasonSecret = "InvalidHelmSecret"

// AccessFromSecret reads the data of a Secret.
func AccessFromSecret(data map[string][]byte) (Access, error) {
	a := Access{
		Username: line(data[keyUsername]), Password: line(data[keyPassword]), Token: line(data[keyToken]),
		PrivateKey: data[keyPrivateKey], KnownHosts: data[keyKnownHosts],
		CACerts: data[keyCACerts], Keyring: data[keyKeyring],
	}
	var err error
	if a.Insecure, err = boolean(data, keyInsecure); err != nil {
		return Access{}, err
	}
	if a.PlainHTTP, err = boolean(data, keyPlainHTTP); err != nil {
		return Access{}, err
	}
	a.CosignKeys = cosignKeys(data)
	return a, a.check()
}

// cosignKeys are the values of all keys that end in .pub; nil where there are none.
// One without a value is not the same as none.
func cosignKeys(data map[string][]byte) []byte {
	var all []byte
	for _, name := range slices.Sorted(maps.Keys(data)) {
		if strings.HasSuffix(name, suffixCosign) {
			all = append(append(all, data[name]...), '\n')
		}
	}
	return all
}

// check refuses what cannot work.
func (a Access) check() error {
	if a.Token != "" && a.Username != "" {
		return fault.Stall(reasonSecret, fmt.Errorf("it has both %s and %s: a server takes one of them", keyToken, keyUsername))
	}
	if a.asksCosign() {
		if _, err := cosign.ParseKeys(a.CosignKeys); err != nil {
			return fault.Stall(reasonSecret, fmt.Errorf("the keys for cosign (*%s): %w", suffixCosign, err))
		}
	}
	_, err := a.tls()
	return err
}

func line(b []byte) string { return string(bytes.TrimRight(b, "\r\n")) }

func boolean(data map[string][]byte, key string) (bool, error) {
	text := strings.TrimSpace(string(data[key]))
	if text == "" {
		return false, nil
	}
	value, err := strconv.ParseBool(text)
	if err != nil {
		return false, fault.Stall(reasonSecret, fmt.Errorf("the key %s is %q: write true or false", key, text))
	}
	return value, nil
}

// pathAccess is the access for one path, as it is written.
type pathAccess struct {
	Username           string `json:"username"`
	Password           string `json:"password"`
	Token              string `json:"token"`
	CABundle           string `json:"caBundle"`
	SSHPrivateKey      string `json:"sshPrivateKey"`
	KnownHosts         string `json:"knownHosts"`
	Keyring            string `json:"keyring"`
	CosignPub          string `json:"cosignPub"`
	InsecureSkipVerify bool   `json:"insecureSkipVerify"`
	BasicHTTP          bool   `json:"basicHTTP"`
}

// PathAccesses are accesses by the paths, or patterns of paths, of bundles.
type PathAccesses map[string]Access

// PathAccessesFromSecret reads the data of a Secret with one access for each
// path.
func PathAccessesFromSecret(data map[string][]byte) (PathAccesses, error) {
	text, ok := data[KeyPaths]
	if !ok {
		return nil, fault.Stall(reasonSecret, fmt.Errorf("it has no key %s", KeyPaths))
	}
	written := map[string]pathAccess{}
	if yaml.Unmarshal(text, &written) != nil {
		// The parser's error could repeat what it could not read.
		return nil, fault.Stall(reasonSecret, fmt.Errorf("%s is not a map from paths to username, password and the like", KeyPaths))
	}
	all := PathAccesses{}
	for pattern, w := range written {
		a, err := w.access()
		if err == nil {
			_, err = path.Match(pattern, "")
		}
		if err != nil {
			return nil, fault.Stall(reasonSecret, fmt.Errorf("%s: the entry %q: %w", KeyPaths, pattern, err))
		}
		all[clean(pattern)] = a
	}
	return all, nil
}

func (w pathAccess) access() (Access, error) {
	a := Access{Username: w.Username, Password: w.Password, Token: w.Token, Insecure: w.InsecureSkipVerify, PlainHTTP: w.BasicHTTP, KnownHosts: []byte(w.KnownHosts)}
	var errs [4]error
	a.CACerts, errs[0] = pem("caBundle", w.CABundle)
	a.PrivateKey, errs[1] = pem("sshPrivateKey", w.SSHPrivateKey)
	a.Keyring, errs[2] = pem("keyring", w.Keyring)
	a.CosignKeys, errs[3] = pem("cosignPub", w.CosignPub)
	if err := errors.Join(errs[:]...); err != nil {
		return Access{}, err
	}
	return a, a.check()
}

// pem takes a text that is PEM-like or the base64 of something.
func pem(name, text string) ([]byte, error) {
	if text == "" || strings.Contains(text, "-----BEGIN") {
		return []byte(text), nil
	}
	data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		return nil, fmt.Errorf("%s is neither PEM nor base64", name)
	}
	return data, nil
}

func clean(p string) string { return path.Clean(strings.TrimLeft(strings.TrimSpace(p), "/")) }

// Of returns the access for the directory of a bundle: that of the path itself,
// or of the first pattern that matches.
func (p PathAccesses) Of(dir string) Access {
	dir = clean(dir)
	if a, ok := p[dir]; ok {
		return a
	}
	var patterns []string
	for pattern := range p {
		patterns = append(patterns, pattern)
	}
	slices.Sort(patterns)
	for _, pattern := range patterns {
		if ok, _ := path.Match(pattern, dir); ok {
			return p[pattern]
		}
	}
	return Access{}
}
