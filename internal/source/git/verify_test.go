package git_test

import (
	"bytes"
	"cmp"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/source/git"
	"github.com/flotilla-sh/flotilla/internal/source/git/gittest"
)

// sign makes the last commit anew with a signature, and with other text after
// it was signed where tamper is set, and pushes it.
func (s site) sign(t *testing.T, tamper bool, signature func(content []byte) string) string {
	t.Helper()
	content := []byte(s.Git("cat-file", "commit", "HEAD") + "\n")
	head, message, _ := strings.Cut(string(content), "\n\n")
	if text := signature(content); text != "" {
		head += "\ngpgsig " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n ")
	}
	if tamper {
		message += "and more\n"
	}
	cmd := exec.Command("git", "hash-object", "-t", "commit", "-w", "--stdin")
	cmd.Dir, cmd.Stdin = s.Work, strings.NewReader(head+"\n\n"+message)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	commit := strings.TrimSpace(string(out))
	s.Git("reset", "--quiet", "--hard", commit)
	s.Git("push", "--quiet", "--force", "origin", "HEAD")
	return commit
}

func sshSigner(t *testing.T, namespace string) (public string, sign func([]byte) string) {
	_, key := gittest.NewKey(t)
	return string(ssh.MarshalAuthorizedKey(key.PublicKey())), func(content []byte) string {
		s, err := sshsig.Sign(bytes.NewReader(content), key, sshsig.HashSHA512, namespace)
		if err != nil {
			t.Fatal(err)
		}
		return string(sshsig.Armor(s))
	}
}

func pgpSigner(t *testing.T, name string) (public string, sign func([]byte) string) {
	entity, err := openpgp.NewEntity(name, "", name+"@example.com", nil)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	w, err := armor.Encode(&text, openpgp.PublicKeyType, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := entity.Serialize(w); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	return text.String(), func(content []byte) string {
		var out bytes.Buffer
		if err := openpgp.ArmoredDetachSign(&out, entity, bytes.NewReader(content), nil); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
}

func keys(t *testing.T, values ...string) *git.Keys {
	t.Helper()
	data := map[string][]byte{}
	for i, v := range values {
		data[fmt.Sprint("key", i)] = []byte(v)
	}
	k, err := git.ParseKeys("space/signers", data)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestSignedCommits(t *testing.T) {
	sshPublic, sshSign := sshSigner(t, "git")
	_, sshStranger := sshSigner(t, "git")
	pgpPublic, pgpSign := pgpSigner(t, "jane")
	pgpOther, pgpStranger := pgpSigner(t, "john")
	otherUse, otherSign := sshSigner(t, "file")
	all := keys(t, sshPublic+"\n# a comment\njane@example.com namespaces=\"git\" "+otherUse, pgpOther+pgpPublic)
	s := newSite(t)
	c := newCache(t)
	for name, tt := range map[string]struct {
		sign   func([]byte) string
		keys   *git.Keys
		tamper bool
		says   string
	}{
		"SSH":                          {sign: sshSign, keys: all},
		"PGP":                          {sign: pgpSign, keys: all},
		"the second of several":        {sign: pgpStranger, keys: all},
		"unsigned":                     {sign: func([]byte) string { return "" }, keys: all, says: "not signed"},
		"unsigned where none is asked": {sign: func([]byte) string { return "" }},
		"an SSH key of nobody":         {sign: sshStranger, keys: all, says: "signed by the SSH key SHA256:"},
		"a PGP key of nobody":          {sign: pgpStranger, keys: keys(t, pgpPublic), says: "signed by the PGP key "},
		"PGP where SSH is trusted":     {sign: pgpSign, keys: keys(t, sshPublic), says: "signed by the PGP key "},
		"SSH over another text":        {sign: sshSign, keys: all, tamper: true, says: "is not one of this commit"},
		"PGP over another text":        {sign: pgpSign, keys: all, tamper: true, says: "is not good"},
		"SSH for another use":          {sign: otherSign, keys: all, says: "is not one of this commit"},
		"no signature at all":          {sign: func([]byte) string { return "-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----" }, keys: all, says: "cannot be read"},
		"another kind":                 {sign: func([]byte) string { return "-----BEGIN SIGNED MESSAGE-----\nAAAA\n-----END SIGNED MESSAGE-----" }, keys: all, says: "neither of PGP nor of SSH"},
	} {
		t.Run(name, func(t *testing.T) {
			s.Push("app/cm.yaml", name)
			commit := s.sign(t, tt.tamper, tt.sign)
			r := s.remote()
			r.Keys = tt.keys
			tree, err := c.Fetch(t.Context(), r, commit)
			if tt.says == "" {
				if err != nil {
					t.Fatal(err)
				}
				wantFile(t, tree, "app/cm.yaml", name)
				return
			}
			(complaint{fault.Waiting, "CommitUnverified", []string{commit, "<a@example.com>", tt.says, "Secret space/signers"}}).check(t, err)
			if tree.FS != nil {
				t.Error("a refused commit was given out")
			}
		})
	}
}

// tag makes an annotated tag by hand, and pushes it under a name.
func (s site) tag(t *testing.T, name, inside, target string, signature func([]byte) string) {
	t.Helper()
	content := fmt.Sprintf("object %s\ntype commit\ntag %s\ntagger a <a@example.com> 1767323045 +0000\n\nrelease\n\n-----BEGIN nothing\n", target, inside)
	cmd := exec.Command("git", "hash-object", "-t", "tag", "-w", "--stdin")
	cmd.Dir, cmd.Stdin = s.Work, strings.NewReader(content+signature([]byte(content)))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s.Git("update-ref", "refs/tags/"+name, strings.TrimSpace(string(out)))
	s.Git("push", "--quiet", "--force", "origin", "refs/tags/"+name)
}

func TestSignedTags(t *testing.T) {
	sshPublic, sshSign := sshSigner(t, "git")
	pgpPublic, pgpSign := pgpSigner(t, "jane")
	_, stranger := sshSigner(t, "git")
	unsigned := func([]byte) string { return "" }
	all := keys(t, sshPublic, pgpPublic)
	s := newSite(t)
	old := s.first
	head := s.Push("app/cm.yaml", "v: 2\n")
	c := newCache(t)
	follow := func(name string) error {
		r := s.remote()
		r.Branch, r.Revision, r.Keys = "", name, all
		commit, err := git.Resolve(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		tree, err := c.Fetch(t.Context(), r, commit)
		if err == nil {
			wantFile(t, tree, "app/cm.yaml", "v: 2\n")
		}
		return err
	}
	for name, tt := range map[string]struct {
		inside, target string
		sign           func([]byte) string
		says           string
	}{
		"ssh":      {target: head, sign: sshSign},
		"pgp":      {target: head, sign: pgpSign},
		"unsigned": {target: head, sign: unsigned, says: "neither of PGP nor of SSH"},
		"stranger": {target: head, sign: stranger, says: "signed by the SSH key SHA256:"},
		"v2":       {inside: "v1", target: head, sign: sshSign, says: `its own name is "v1"`},
		"tampered": {target: head, sign: func(text []byte) string { return sshSign(append(text, 'x')) }, says: "is not one of this tag"},
	} {
		t.Run(name, func(t *testing.T) {
			s.tag(t, name, cmp.Or(tt.inside, name), tt.target, tt.sign)
			err := follow(name)
			if tt.says == "" {
				if err != nil {
					t.Fatal(err)
				}
				before := s.server.Requests()
				if err := follow("refs/tags/" + name); err != nil || s.server.Requests() != before+1 {
					t.Errorf("again: %d requests, %v, want that of the poll alone", s.server.Requests()-before, err)
				}
				return
			}
			(complaint{fault.Waiting, "CommitUnverified", []string{head, "it is not signed; nor does the tag \"" + name + "\" vouch for it", tt.says}}).check(t, err)
		})
	}
	s.Git("tag", "light")
	s.Git("push", "--quiet", "origin", "refs/tags/light")
	(complaint{fault.Waiting, "CommitUnverified", []string{"it is not annotated"}}).check(t, follow("light"))
	r := s.remote()
	r.Keys = all
	_, err := c.Fetch(t.Context(), r, head)
	(complaint{fault.Waiting, "CommitUnverified", []string{"it is not signed; what was deployed"}}).check(t, err)

	// A tag that is signed later, and one that moves to another commit.
	s.tag(t, "unsigned", "unsigned", head, sshSign)
	if err := follow("unsigned"); err != nil {
		t.Error(err)
	}
	s.tag(t, "ssh", "ssh", old, unsigned)
	(complaint{fault.Waiting, "CommitUnverified", []string{old, "neither of PGP nor of SSH"}}).check(t, follow("ssh"))
}

func TestParseKeysComplains(t *testing.T) {
	public, _ := sshSigner(t, "git")
	for name, tt := range map[string]struct{ text, says string }{
		"nothing":     {"", "has no public key"},
		"text":        {"hello", "line 1"},
		"a block":     {"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nAAAA\n-----END PGP PUBLIC KEY BLOCK-----", "block 1"},
		"with an end": {public + "jane valid-before=\"20260101\" " + public, "valid-before"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := git.ParseKeys("space/signers", map[string][]byte{"k": []byte(tt.text)})
			(complaint{fault.Stalled, "InvalidSecret", []string{"space/signers", tt.says}}).check(t, err)
		})
	}
}
