package git

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// hostKeys parses known_hosts. The parser only reads files, so the lines go
// through a temporary one; they hold nothing secret.
func (c Credentials) hostKeys() (ssh.HostKeyCallback, error) {
	f, err := os.CreateTemp("", "known_hosts-*")
	if err != nil {
		return nil, fmt.Errorf("cannot store known_hosts: %w", err)
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.Write(append(c.KnownHosts, '\n'))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("cannot store known_hosts: %w", err)
	}
	check, err := knownhosts.New(f.Name())
	if err != nil {
		why := strings.ReplaceAll(err.Error(), f.Name(), "line ")
		return nil, secretError("has a key %s that cannot be parsed: %s", keyKnownHosts, strings.Replace(why, "line :", "line ", 1))
	}
	return check, nil
}

// hostKeyAlgorithms asks for the kinds of key that are known for the host, so
// that a server with several keys shows one of those. It learns them by showing
// a key that nobody has.
func hostKeyAlgorithms(check ssh.HostKeyCallback, addr string) []string {
	nobody, err := ssh.NewPublicKey(make(ed25519.PublicKey, ed25519.PublicKeySize))
	if err != nil {
		return nil
	}
	mismatch, ok := errors.AsType[*knownhosts.KeyError](check(addr, &net.TCPAddr{}, nobody))
	if !ok {
		return nil
	}
	var algorithms []string
	for _, known := range mismatch.Want {
		if known.Key.Type() == ssh.KeyAlgoRSA {
			algorithms = append(algorithms, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
		}
		algorithms = append(algorithms, known.Key.Type())
	}
	return algorithms
}
