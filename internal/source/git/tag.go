package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
)

// maxTag is the size beyond which a tag is not looked at.
const maxTag = 1 << 20

// annotated is the object of an annotated tag.
type annotated struct {
	name   string
	kind   string
	target string
	signature
}

// parseTag takes the object of a tag apart. The signature is what begins at the
// last line that looks like one, as git has it.
func parseTag(text []byte) annotated {
	var a annotated
	begin := len(text)
	at, header := 0, true
	for line := range bytes.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")
		header = header && key != ""
		switch {
		case header && key == "object" && a.target == "":
			a.target = value
		case header && key == "type" && a.kind == "":
			a.kind = value
		case header && key == "tag" && a.name == "":
			a.name = value
		case !header && bytes.HasPrefix(line, []byte("-----BEGIN ")):
			begin = at
		}
		at += len(line)
	}
	a.signature = signature{of: "tag", text: string(text[begin:]), content: text[:begin]}
	return a
}

// judgeTag says why a tag does not vouch for a commit, or nil. The name in it
// must be the one that is followed: else an old tag, good as its signature is,
// could be served under the name of a new one.
func (k *Keys) judgeTag(a annotated, name string, want plumbing.Hash) error {
	switch {
	case a.kind != "commit" || a.target != want.String():
		return errors.New("it is of something else")
	case a.name != name:
		return fmt.Errorf("its own name is %q", a.name)
	}
	return k.judge(a.signature)
}

// vouched says why the tag that is followed does not vouch for the commit, or
// nil. The tag that is on disk counts if it does; else the server is asked, since
// it may have been signed later.
func (f fetching) vouched(ctx context.Context, s *store, name plumbing.ReferenceName) (why, err error) {
	if ref, err := s.objects.Reference(tagRef(name)); err == nil {
		if a, err := s.tag(ref.Hash()); err == nil && f.remote.Keys.judgeTag(a, name.Short(), f.want) == nil {
			return nil, nil
		}
	}
	hash, err := f.fetchTag(ctx, s, name)
	if err != nil {
		return nil, err
	}
	if hash.IsZero() {
		return errors.New("it is not annotated, so it has no signature"), nil
	}
	if s, err = openStore(s.dir); err != nil {
		return nil, err
	}
	a, err := s.tag(hash)
	if err != nil {
		return nil, fmt.Errorf("read the tag %s of %s: %w", name.Short(), f.remote.place(), err)
	}
	if why := f.remote.Keys.judgeTag(a, name.Short(), f.want); why != nil {
		return why, nil
	}
	return nil, s.objects.SetReference(plumbing.NewHashReference(tagRef(name), hash))
}

// tagRef is where the object of a tag is remembered.
func tagRef(name plumbing.ReferenceName) plumbing.ReferenceName {
	return plumbing.ReferenceName(fmt.Sprintf("refs/flotilla-tags/%x", name.String()))
}

// fetchTag gets the object of a tag; its hash is zero where there is none.
func (f fetching) fetchTag(ctx context.Context, s *store, name plumbing.ReferenceName) (hash plumbing.Hash, err error) {
	_, err = f.transfer(ctx, s, func(s *store, refs *packp.AdvRefs) ask {
		if _, ok := refs.Peeled[name.String()]; !ok {
			return ask{}
		}
		hash = refs.References[name.String()]
		return ask{wants: s.missing([]plumbing.Hash{hash}), depth: 1}
	})
	return hash, err
}

// tag reads the object of a tag.
func (s *store) tag(hash plumbing.Hash) (annotated, error) {
	object, err := s.objects.EncodedObject(plumbing.TagObject, hash)
	if err != nil {
		return annotated{}, err
	}
	if object.Size() > maxTag {
		return annotated{}, fmt.Errorf("the tag has more than %d bytes", maxTag)
	}
	r, err := object.Reader()
	if err != nil {
		return annotated{}, err
	}
	defer func() { _ = r.Close() }()
	text, err := io.ReadAll(r)
	return parseTag(text), err
}
