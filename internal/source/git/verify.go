package git

import (
	"bytes"
	"context"
	_ "crypto/sha512" // the hash of SSH signatures
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	pgperrors "github.com/ProtonMail/go-crypto/openpgp/errors"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"

	"github.com/flotilla-sh/flotilla/internal/fault"
)

// ReasonUnverified is the reason of a commit without a good signature.
const ReasonUnverified = "CommitUnverified"

const (
	// retryUnverified is how soon a commit is looked at again: a key may have
	// been added to the Secret, which nobody watches.
	retryUnverified = time.Minute
	// signedFor is what SSH signatures of Git are made for.
	signedFor = "git"
	pgpBlock  = "-----BEGIN PGP PUBLIC KEY BLOCK-----"
)

// Keys are the public keys whose signatures on commits and tags are trusted.
type Keys struct {
	// from names the Secret, for messages.
	from string
	pgp  openpgp.EntityList
	ssh  []ssh.PublicKey
}

// ParseKeys reads the data of a Secret. Each value holds armored PGP keys, or
// SSH keys one a line as in authorized_keys or allowed_signers.
func ParseKeys(from string, data map[string][]byte) (*Keys, error) {
	k := &Keys{from: from}
	for _, name := range slices.Sorted(maps.Keys(data)) {
		err := k.addSSH(data[name])
		if bytes.Contains(data[name], []byte(pgpBlock)) {
			err = k.addPGP(data[name])
		}
		if err != nil {
			return nil, fault.Stall(ReasonInvalidSecret, fmt.Errorf("the Secret %s has a key %s that cannot be used: %w", from, name, err))
		}
	}
	if len(k.pgp)+len(k.ssh) == 0 {
		return nil, fault.Stall(ReasonInvalidSecret, fmt.Errorf("the Secret %s has no public key to check commits with; "+
			"put in the output of `gpg --armor --export`, or SSH public keys", from))
	}
	return k, nil
}

// addPGP adds all blocks of a text.
func (k *Keys) addPGP(text []byte) error {
	for i, block := range bytes.Split(text, []byte(pgpBlock))[1:] {
		keys, err := openpgp.ReadArmoredKeyRing(io.MultiReader(strings.NewReader(pgpBlock), bytes.NewReader(block)))
		if err != nil {
			return fmt.Errorf("block %d is no PGP public key: %w", i+1, err)
		}
		k.pgp = append(k.pgp, keys...)
	}
	return nil
}

func (k *Keys) addSSH(text []byte) error {
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, err := signerOf(line)
		if err != nil {
			return fmt.Errorf("line %d: %w", i+1, err)
		}
		k.ssh = append(k.ssh, key)
	}
	return nil
}

// signerOf reads a public key, or one behind the names of its holders. Options
// would limit what the key is good for, and are refused rather than forgotten.
func signerOf(line string) (ssh.PublicKey, error) {
	for _, text := range []string{line, line[strings.IndexByte(line, ' ')+1:]} {
		key, _, options, _, err := ssh.ParseAuthorizedKey([]byte(text))
		switch {
		case err != nil:
		case len(options) == 0:
			return key, nil
		case text != line && (len(options) > 1 || options[0] != `namespaces="git"`):
			return nil, fmt.Errorf("the option %s is not known here: give the key alone", strings.Join(options, ","))
		case text != line:
			return key, nil
		}
	}
	return nil, errors.New("it is neither an SSH public key nor a PGP public key block")
}

// verify refuses a commit that no trusted key has signed, neither itself nor the
// tag that is followed.
func (f fetching) verify(ctx context.Context, s *store) error {
	k := f.remote.Keys
	if k == nil {
		return nil
	}
	commit, err := object.GetCommit(s.objects, f.want)
	if err != nil {
		return err
	}
	why := k.judgeCommit(commit)
	if name := f.remote.target().tag; why != nil && name != "" {
		whyTag, err := f.vouched(ctx, s, name)
		if err != nil || whyTag == nil {
			return err
		}
		why = fmt.Errorf("%w; nor does the tag %q vouch for it: %w", why, name.Short(), whyTag)
	}
	if why != nil {
		return wait(retryUnverified, ReasonUnverified, "commit %s of %s, by %s, is refused: %w; what was deployed before stays. "+
			"Sign it with a key of the Secret %s, or add the signer's key to that", f.want, f.remote.place(), author(commit), why, k.from)
	}
	return nil
}

func author(c *object.Commit) string {
	return fmt.Sprintf("%q <%s>", c.Committer.Name, c.Committer.Email)
}

// signature is one, and what it was made over.
type signature struct {
	// of is the word for what is signed.
	of      string
	text    string
	content []byte
}

// judgeCommit says why the signature of a commit is not good, or nil. Signed is
// the commit as it is stored, but the signature.
func (k *Keys) judgeCommit(c *object.Commit) error {
	text := &plumbing.MemoryObject{}
	if err := c.EncodeWithoutSignature(text); err != nil {
		return err
	}
	r, err := text.Reader()
	if err != nil {
		return err
	}
	content, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	return k.judge(signature{"commit", c.PGPSignature, content})
}

// judge says why a signature is not good, or nil.
func (k *Keys) judge(s signature) error {
	switch s.text = strings.TrimSpace(s.text); {
	case s.text == "":
		return errors.New("it is not signed")
	case strings.HasPrefix(s.text, "-----BEGIN SSH SIGNATURE-----"):
		return k.judgeSSH(s)
	case strings.HasPrefix(s.text, "-----BEGIN PGP SIGNATURE-----"):
		return k.judgePGP(s)
	default:
		return errors.New("it has a signature that is neither of PGP nor of SSH")
	}
}

func (k *Keys) judgeSSH(s signature) error {
	signature, err := sshsig.Unarmor([]byte(s.text))
	if err != nil {
		return fmt.Errorf("its SSH signature cannot be read: %w", err)
	}
	print := ssh.FingerprintSHA256(signature.PublicKey)
	own := slices.ContainsFunc(k.ssh, func(key ssh.PublicKey) bool { return bytes.Equal(key.Marshal(), signature.PublicKey.Marshal()) })
	if !own {
		return fmt.Errorf("it is signed by the SSH key %s, which is not trusted", print)
	}
	if err := sshsig.Verify(bytes.NewReader(s.content), signature, signature.PublicKey, signature.HashAlgorithm, signedFor); err != nil {
		return fmt.Errorf("the signature by the SSH key %s is not one of this %s: %w", print, s.of, err)
	}
	return nil
}

func (k *Keys) judgePGP(s signature) error {
	if strings.Count(s.text, "-----BEGIN ") > 1 {
		return errors.New("it has several signatures")
	}
	_, err := openpgp.CheckArmoredDetachedSignature(k.pgp, bytes.NewReader(s.content), strings.NewReader(s.text), &packet.Config{})
	switch {
	case err == nil:
		return nil
	case errors.Is(err, pgperrors.ErrUnknownIssuer):
		return fmt.Errorf("it is signed by the PGP key %s, which is not trusted", issuer(s.text))
	default:
		return fmt.Errorf("the signature by the PGP key %s is not good: %w", issuer(s.text), err)
	}
}

// issuer is the id of the key that a PGP signature says it is made with.
func issuer(text string) string {
	block, err := armor.Decode(strings.NewReader(text))
	if err != nil {
		return "without an id"
	}
	p, err := packet.Read(block.Body)
	signature, ok := p.(*packet.Signature)
	if err != nil || !ok || signature.IssuerKeyId == nil {
		return "without an id"
	}
	return fmt.Sprintf("%016X", *signature.IssuerKeyId)
}
