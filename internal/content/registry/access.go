// Package registry stores content in an OCI registry instead of the hub's API
// server. It is the only door to oras-go for content.
//
// A root is a manifest: its config is the root's payload, its layers are packs
// of chunks. It is tagged with the root's name, so that a registry's garbage
// collection keeps it and what it refers to. What is secret never comes here.
package registry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/flotilla-sh/flotilla/internal/digest"
	"github.com/flotilla-sh/flotilla/internal/fault"
)

// Keys of a Secret with the access to a registry, as in Rancher Fleet.
const (
	keyReference, keyUsername, keyPassword  = "reference", "username", "password"
	keyAgentUsername, keyAgentPassword      = "agentUsername", "agentPassword"
	keyBasicHTTP, keyInsecure, keyAuthority = "basicHTTP", "insecureSkipTLS", "cacerts"
)

// ReasonInvalidAccess is the reason of a stalled error about such a Secret.
const ReasonInvalidAccess = "InvalidRegistrySecret"

// answerWithin is how long a registry may take to begin an answer.
const answerWithin = 30 * time.Second

// Access is how a registry is reached.
type Access struct {
	// Reference is the host and path, without a scheme.
	Reference          string
	Username, Password string
	// BasicHTTP asks for HTTP without TLS, Insecure for TLS that proves nothing.
	BasicHTTP, Insecure bool
	// CACerts are what the registry's certificate is verified with; empty for
	// those of the system.
	CACerts string
}

// Accesses reads the data of a Secret: how the hub reaches the registry, and
// how agents do, who may have an account of their own that only reads.
func Accesses(data map[string][]byte) (hub, agent Access, err error) {
	hub.Reference = strings.Trim(strings.TrimPrefix(string(data[keyReference]), "oci://"), "/")
	hub.Username, hub.Password = string(data[keyUsername]), string(data[keyPassword])
	hub.CACerts = string(data[keyAuthority])
	if hub.Reference == "" {
		return hub, agent, invalid(fmt.Errorf("the key %s is missing: the host of the registry and a path, such as registry.example.org/fleet", keyReference))
	}
	if hub.BasicHTTP, err = boolean(data, keyBasicHTTP); err != nil {
		return hub, agent, err
	}
	if hub.Insecure, err = boolean(data, keyInsecure); err != nil {
		return hub, agent, err
	}
	if hub.CACerts != "" && !x509.NewCertPool().AppendCertsFromPEM([]byte(hub.CACerts)) {
		return hub, agent, invalid(fmt.Errorf("the key %s holds no PEM certificate", keyAuthority))
	}
	agent = hub
	if user := string(data[keyAgentUsername]); user != "" {
		agent.Username, agent.Password = user, string(data[keyAgentPassword])
	}
	return hub, agent, nil
}

func invalid(err error) error { return fault.Stall(ReasonInvalidAccess, err) }

func boolean(data map[string][]byte, key string) (bool, error) {
	text := strings.TrimSpace(string(data[key]))
	if text == "" {
		return false, nil
	}
	value, err := strconv.ParseBool(text)
	if err != nil {
		return false, invalid(fmt.Errorf("the key %s is %q: write true or false", key, text))
	}
	return value, nil
}

// Data returns the data of a Secret that Accesses reads this from.
func (a Access) Data() map[string][]byte {
	data := map[string][]byte{keyReference: []byte(a.Reference)}
	put := func(key, value string) {
		if value != "" {
			data[key] = []byte(value)
		}
	}
	put(keyUsername, a.Username)
	put(keyPassword, a.Password)
	put(keyAuthority, a.CACerts)
	if a.BasicHTTP {
		put(keyBasicHTTP, "true")
	}
	if a.Insecure {
		put(keyInsecure, "true")
	}
	return data
}

// Digest tells accesses apart.
func (a Access) Digest() string {
	raw, err := json.Marshal(a)
	if err != nil {
		panic("an access is not JSON: " + err.Error())
	}
	return digest.OfBytes(raw)[:32]
}

// repository returns the client of a repository.
func (a Access) repository() (*remote.Repository, error) {
	repo, err := remote.NewRepository(a.Reference)
	if err != nil {
		return nil, invalid(fmt.Errorf("the reference %q names no repository: %w", a.Reference, err))
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = answerWithin
	transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: a.Insecure, MinVersion: tls.VersionTLS12} //nolint:gosec // where its owner asks for it
	if a.CACerts != "" {
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM([]byte(a.CACerts))
		transport.TLSClientConfig.RootCAs = pool
	}
	client := &auth.Client{Client: &http.Client{Transport: transport}, Cache: auth.NewCache()}
	client.SetUserAgent("flotilla")
	if a.Username != "" || a.Password != "" {
		client.Credential = auth.StaticCredential(repo.Reference.Registry, auth.Credential{Username: a.Username, Password: a.Password})
	}
	repo.Client, repo.PlainHTTP = client, a.BasicHTTP
	return repo, nil
}

// Unreachable tells whether an error means that the registry did not answer, or
// not to the end. That of a caller who gave up says nothing of the registry.
func Unreachable(err error) bool {
	_, ok := errors.AsType[*url.Error](err)
	return (ok || errors.Is(err, context.DeadlineExceeded)) && !errors.Is(err, context.Canceled)
}
