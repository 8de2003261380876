package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// objectCacheSize bounds the decoded objects that an open store remembers. It
// is small: trees are read once from end to end.
const objectCacheSize = 8 * cache.MiByte

// store is one bare repository on disk. It is not safe for concurrent use.
type store struct {
	dir     string
	objects *filesystem.Storage
	// memory holds decoded objects.
	memory cache.Object
	// limit is how many bytes a pack may have; 0 is no bound.
	limit int64
}

func openStore(dir string) (*store, error) {
	if _, err := os.Stat(filepath.Join(dir, "objects")); err != nil {
		return nil, err
	}
	return newStore(dir), nil
}

func createStore(dir string) (*store, error) {
	s := newStore(dir)
	if err := s.objects.Init(); err != nil {
		return nil, fmt.Errorf("cannot write the Git cache: %w", err)
	}
	return s, nil
}

func newStore(dir string) *store {
	memory := cache.NewObjectLRU(objectCacheSize)
	return &store{dir: dir, memory: memory, objects: filesystem.NewStorage(osfs.New(dir), memory)}
}

// sharing is the same store with the memory of another, so that many stores
// that are read together need no more than one.
func (s *store) sharing(other *store) *store {
	return &store{dir: s.dir, memory: other.memory, objects: filesystem.NewStorage(osfs.New(s.dir), other.memory)}
}

// has tells whether the commit and its root are there. Packs are complete, so
// everything below the root is, too.
func (s *store) has(commit plumbing.Hash) bool {
	c, err := object.GetCommit(s.objects, commit)
	return err == nil && s.objects.HasEncodedObject(c.TreeHash) == nil
}

// missing returns those of the objects that are not there.
func (s *store) missing(all []plumbing.Hash) []plumbing.Hash {
	return slices.DeleteFunc(all, func(h plumbing.Hash) bool { return s.objects.HasEncodedObject(h) == nil })
}

// whole tells whether the store has the full history of what it follows.
func (s *store) whole() bool {
	shallow, err := s.objects.Shallow()
	return err == nil && len(shallow) == 0
}

// crowded tells whether the store has collected more than so many packs.
func (s *store) crowded(limit int) bool {
	packs, err := s.objects.ObjectPacks()
	return err != nil || len(packs) > limit
}

// follows tells whether the store has an earlier state of a ref of the server,
// for the next to build on.
func (s *store) follows(name string) bool {
	ref, err := s.objects.Reference(ownRef(name))
	return err == nil && s.has(ref.Hash())
}

// ownRef keeps names of the server apart from paths on our disk.
func ownRef(name string) plumbing.ReferenceName {
	return plumbing.ReferenceName(fmt.Sprintf("refs/flotilla/%x", name))
}

// follow records what was fetched under a name.
func (s *store) follow(name string, refs *packp.AdvRefs) error {
	commit, ok := peeled(refs, plumbing.ReferenceName(name))
	if !ok {
		commit = plumbing.NewHash(name)
	}
	return s.objects.SetReference(plumbing.NewHashReference(ownRef(name), commit))
}

// haves are the commits that the store can vouch for.
func (s *store) haves() ([]plumbing.Hash, error) {
	refs, err := s.objects.IterReferences()
	if err != nil {
		return nil, err
	}
	var all []plumbing.Hash
	err = refs.ForEach(func(ref *plumbing.Reference) error {
		if ref.Type() == plumbing.HashReference && s.has(ref.Hash()) {
			all = append(all, ref.Hash())
		}
		return nil
	})
	return all, err
}

// request builds what to ask a server for. The shallow commits are told even
// where no depth is asked for: else a server would believe that we have all
// their ancestors and leave out files that a later commit brings back.
func (s *store) request(refs *packp.AdvRefs, a ask) (*packp.UploadPackRequest, error) {
	req := packp.NewUploadPackRequestFromCapabilities(refs.Capabilities)
	req.Wants = a.wants
	var err error
	if req.Haves, err = s.haves(); err != nil {
		return nil, err
	}
	if req.Shallows, err = s.objects.Shallow(); err != nil {
		return nil, err
	}
	canShallow := refs.Capabilities.Supports(capability.Shallow)
	if canShallow {
		req.Depth = packp.DepthCommits(a.depth)
	}
	if canShallow && (a.depth > 0 || len(req.Shallows) > 0) {
		err = req.Capabilities.Set(capability.Shallow)
	}
	if refs.Capabilities.Supports(capability.NoProgress) {
		err = errors.Join(err, req.Capabilities.Set(capability.NoProgress))
	}
	return req, err
}

// pull asks a server for a pack and stores it.
func (s *store) pull(ctx context.Context, conn session, refs *packp.AdvRefs, a ask) error {
	req, err := s.request(refs, a)
	if err != nil {
		return err
	}
	res, err := conn.UploadPack(ctx, req)
	if err != nil {
		return err
	}
	if err := s.take(req, res); err != nil {
		return err
	}
	for _, name := range a.names {
		err = errors.Join(err, s.follow(name, refs))
	}
	return err
}

// take stores a server's answer.
func (s *store) take(req *packp.UploadPackRequest, res *packp.UploadPackResponse) error {
	if err := s.updateShallow(res); err != nil {
		return err
	}
	pack := checked(bounded(packOf(req, res), s.limit))
	defer pack.Close()
	err := packfile.UpdateObjectStorage(s.objects, pack)
	err = errors.Join(err, res.Close())
	if err != nil {
		s.clean()
	}
	return err
}

// clean removes the pack that a transfer has left unfinished.
func (s *store) clean() {
	left, _ := filepath.Glob(filepath.Join(s.dir, "objects", "pack", "tmp_*"))
	for _, file := range left {
		_ = os.Remove(file)
	}
}

// updateShallow comes before the pack: a shallow entry too many costs a few
// bytes, one too few breaks later fetches.
func (s *store) updateShallow(res *packp.UploadPackResponse) error {
	known, err := s.objects.Shallow()
	if err != nil {
		return err
	}
	all := slices.DeleteFunc(append(known, res.Shallows...), func(h plumbing.Hash) bool {
		return slices.Contains(res.Unshallows, h)
	})
	plumbing.HashesSort(all)
	all = slices.Compact(all)
	if slices.Equal(all, known) {
		return nil
	}
	return s.objects.SetShallow(all)
}

// packOf takes the pack out of the channel that it shares with progress and
// error messages.
func packOf(req *packp.UploadPackRequest, res *packp.UploadPackResponse) io.Reader {
	switch {
	case req.Capabilities.Supports(capability.Sideband64k):
		return sideband.NewDemuxer(sideband.Sideband64k, res)
	case req.Capabilities.Supports(capability.Sideband):
		return sideband.NewDemuxer(sideband.Sideband, res)
	default:
		return res
	}
}
