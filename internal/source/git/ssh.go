package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/transport"
	"golang.org/x/crypto/ssh"

	"github.com/flotilla-sh/flotilla/internal/fault"
)

// defaultSSHUser is the login of every well-known Git host.
const defaultSSHUser = "git"

// complaintLimit bounds what is kept of a server's complaint.
const complaintLimit = 512

// sshLoginError is a login that the server refused after its own key was
// accepted.
type sshLoginError struct{ user string }

// Error names the login, which is no secret for ssh.
func (e *sshLoginError) Error() string {
	return fmt.Sprintf("the server does not accept the SSH key for user %q", e.user)
}

func dialSSH(ctx context.Context, ep *transport.Endpoint, c Credentials) (session, error) {
	login, err := newSSHLogin(ep, c)
	if err != nil {
		return nil, err
	}
	client, err := login.open(ctx, hostPort(ep))
	if err != nil {
		return nil, err
	}
	s, err := startUploadPack(client, ep.Path)
	if err != nil {
		_ = client.Close()
		return nil, err
	}
	return s, nil
}

// sshLogin is a login in progress; hostAccepted tells a refused key of ours
// from a refused key of the server's.
type sshLogin struct {
	config       *ssh.ClientConfig
	hostAccepted bool
}

func newSSHLogin(ep *transport.Endpoint, c Credentials) (*sshLogin, error) {
	if len(c.PrivateKey) == 0 {
		return nil, wrongSecret("ssh", SecretTypeSSHAuth)
	}
	if !c.knowsHosts() {
		host := strings.Trim(ep.Host, "[]")
		return nil, fault.Stall(ReasonHostKeyUnknown, fmt.Errorf("neither the credential Secret nor the hub's ConfigMap known-hosts has a key %s, so the server %s cannot be told "+
			"from an impostor; add the key %s to the Secret with the output of `ssh-keyscan %s` after checking it against the host's published keys",
			keyKnownHosts, host, keyKnownHosts, host))
	}
	signer, err := c.signer()
	if err != nil {
		return nil, err
	}
	check, err := c.hostKeys()
	if err != nil {
		return nil, err
	}
	l := &sshLogin{}
	l.config = &ssh.ClientConfig{
		User:              userOf(ep),
		Auth:              []ssh.AuthMethod{ssh.PublicKeys(signer)},
		HostKeyAlgorithms: hostKeyAlgorithms(check, hostPort(ep)),
		HostKeyCallback: func(addr string, remote net.Addr, key ssh.PublicKey) error {
			err := check(addr, remote, key)
			l.hostAccepted = err == nil
			return err
		},
	}
	return l, nil
}

func userOf(ep *transport.Endpoint) string {
	if ep.User == "" {
		return defaultSSHUser
	}
	return ep.User
}

func (l *sshLogin) open(ctx context.Context, addr string) (*ssh.Client, error) {
	conn, err := dialTCP(ctx, addr)
	if err != nil {
		return nil, err
	}
	sc, channels, requests, err := ssh.NewClientConn(conn, addr, l.config)
	if err != nil {
		_ = conn.Close()
		if l.hostAccepted && ctx.Err() == nil {
			return nil, &sshLoginError{l.config.User}
		}
		return nil, err
	}
	return ssh.NewClient(sc, channels, requests), nil
}

func startUploadPack(client *ssh.Client, path string) (*stream, error) {
	s, err := client.NewSession()
	if err != nil {
		return nil, err
	}
	in, errIn := s.StdinPipe()
	out, errOut := s.StdoutPipe()
	complaint := &limitedBuffer{}
	s.Stderr = complaint
	if err := errors.Join(errIn, errOut); err != nil {
		return nil, err
	}
	if err := s.Start(transport.UploadPackServiceName + " " + shellQuote(path)); err != nil {
		return nil, err
	}
	return &stream{in: in, out: out, close: client.Close, complaint: func() string {
		_ = s.Wait()
		return complaint.line()
	}}, nil
}

// shellQuote quotes for the shell that the server may run the command in.
func shellQuote(s string) string {
	s = strings.ReplaceAll(s, `'`, `'\''`)
	return "'" + strings.ReplaceAll(s, "!", `'\!'`) + "'"
}

// limitedBuffer keeps the beginning of what is written to it.
type limitedBuffer struct{ bytes.Buffer }

// Write takes everything and keeps some of it.
func (b *limitedBuffer) Write(p []byte) (int, error) {
	if room := complaintLimit - b.Len(); room > 0 {
		b.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// line is the first line that says something.
func (b *limitedBuffer) line() string {
	for l := range strings.Lines(b.String()) {
		if l = strings.TrimSpace(l); l != "" {
			return strings.ToValidUTF8(l, "")
		}
	}
	return ""
}
