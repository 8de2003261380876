package gittest

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// SSHServer serves the repositories of one directory over SSH to the holder of
// one key.
type SSHServer struct {
	// Root holds the bare repositories.
	Root string
	// Addr is host:port.
	Addr string
	// ClientKey is the private key that may in.
	ClientKey []byte
	// KnownHosts is the server's line for known_hosts.
	KnownHosts []byte

	config *ssh.ServerConfig
}

// ServeSSH starts a server that ends with the test.
func ServeSSH(t testing.TB, root string) *SSHServer {
	t.Helper()
	clientPEM, client := NewKey(t)
	_, host := NewKey(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	s := &SSHServer{Root: root, Addr: listener.Addr().String(), ClientKey: clientPEM, config: &ssh.ServerConfig{}}
	s.KnownHosts = []byte(knownhosts.Line([]string{s.Addr}, host.PublicKey()))
	s.config.PublicKeyCallback = func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if bytes.Equal(key.Marshal(), client.PublicKey().Marshal()) {
			return &ssh.Permissions{}, nil
		}
		return nil, errors.New("unknown key")
	}
	s.config.AddHostKey(host)
	go s.accept(listener)
	return s
}

// NewKey makes a key pair.
func NewKey(t testing.TB) ([]byte, ssh.Signer) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(block), signer
}

func (s *SSHServer) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go s.serve(conn)
	}
}

func (s *SSHServer) serve(conn net.Conn) {
	sc, channels, requests, err := ssh.NewServerConn(conn, s.config)
	if err != nil {
		_ = conn.Close()
		return
	}
	defer func() { _ = sc.Close() }()
	go ssh.DiscardRequests(requests)
	for c := range channels {
		channel, requests, err := c.Accept()
		if err != nil {
			return
		}
		go s.session(channel, requests)
	}
}

func (s *SSHServer) session(channel ssh.Channel, requests <-chan *ssh.Request) {
	defer func() { _ = channel.Close() }()
	for req := range requests {
		if req.Type != "exec" {
			_ = req.Reply(false, nil)
			continue
		}
		_ = req.Reply(true, nil)
		status := s.uploadPack(channel, string(req.Payload[4:]))
		_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{status}))
		return
	}
}

func (s *SSHServer) uploadPack(channel ssh.Channel, command string) uint32 {
	path, ok := strings.CutPrefix(command, "git-upload-pack ")
	if !ok {
		return 127
	}
	cmd := exec.Command(git(), "upload-pack", filepath.Join(s.Root, strings.Trim(path, "'")))
	cmd.Stdout, cmd.Stderr = channel, channel.Stderr()
	in, err := cmd.StdinPipe()
	if err != nil || cmd.Start() != nil {
		return 1
	}
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := channel.Read(buf)
			if _, failed := in.Write(buf[:n]); err != nil || failed != nil {
				_ = in.Close()
				return
			}
		}
	}()
	if cmd.Wait() != nil {
		return 128
	}
	return 0
}
