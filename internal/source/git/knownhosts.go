package git

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// hostKeys parses known_hosts. The parser only reads files.
func (c Credentials) hostKeys() (ssh.HostKeyCallback, error) {
	name, done, err := asFile(keyKnownHosts, c.KnownHosts)
	if err != nil {
		return nil, fmt.Errorf("there is no place for %s: %w", keyKnownHosts, err)
	}
	defer done()
	check, err := knownhosts.New(name)
	if _, missing := errors.AsType[*fs.PathError](err); missing {
		return nil, fmt.Errorf("cannot read %s again: %w", keyKnownHosts, err)
	}
	if err != nil {
		why := strings.ReplaceAll(err.Error(), name, "line ")
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
