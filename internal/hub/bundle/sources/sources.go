// Package sources has the files of Bundles: those that the hub has stored for
// them, and those that a person wrote into them.
package sources

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flotilla-sh/flotilla/internal/cache"
	"github.com/flotilla-sh/flotilla/internal/content"
	"github.com/flotilla-sh/flotilla/internal/content/kube"
	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/source"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

const (
	// room is the memory for the files of bundles that were used last.
	room = 32 << 20
	// soon is when to look again for a source that is not there.
	soon = time.Second
)

// Files are the files of a bundle, sorted by path, and their digest.
type Files struct {
	Files  []source.File
	Digest string
}

// Sources stores and reads the files of bundles. It keeps at hand what was used
// last: what one controller has just stored the next one deploys.
type Sources struct {
	store *kube.Store
	key   content.Key
	kept  *cache.LRU[Files]
}

// New returns the sources in a store.
func New(store *kube.Store, key content.Key) *Sources {
	return &Sources{store: store, key: key, kept: cache.New[Files](room)}
}

// Packed are files that can be stored.
type Packed struct {
	content.Encoded
	files []source.File
}

// ID is what a Bundle names them by.
func (p Packed) ID() string { return p.Root.Name }

// Pack makes files ready to be stored. They are sorted by path, and nobody
// changes them from now on.
func (s *Sources) Pack(files []source.File) (Packed, error) {
	enc, err := content.EncodeFiles(s.key, files)
	return Packed{Encoded: enc, files: files}, err
}

// Has tells whether files are stored in a namespace.
func (s *Sources) Has(ctx context.Context, p Packed, namespace string) (bool, error) {
	return s.store.Has(ctx, p.Root.Ref, namespace)
}

// Put stores files in a namespace.
func (s *Sources) Put(ctx context.Context, p Packed, namespace string) error {
	if err := s.store.Put(ctx, p.Encoded, namespace); err != nil {
		return err
	}
	s.keep(namespace+"/"+p.ID(), p.files)
	return nil
}

// Of returns the files of a Bundle.
func (s *Sources) Of(ctx context.Context, bundle *fleet.Bundle) (Files, error) {
	if bundle.Spec.ContentsID == "" {
		return inline(bundle)
	}
	key := bundle.Namespace + "/" + bundle.Spec.ContentsID
	if kept, ok := s.kept.Get(key); ok {
		return kept, nil
	}
	root := content.Ref{Name: bundle.Spec.ContentsID, Secret: true}
	stored, err := content.FetchFiles(ctx, s.store.In(bundle.Namespace), root)
	if apierrors.IsNotFound(err) {
		return Files{}, Missing(bundle, "WaitingForSource", fmt.Errorf("the stored source of the bundle is not there (yet): %w", err))
	}
	if err != nil {
		return Files{}, err
	}
	return s.keep(key, stored), nil
}

// Missing is the error where something is not stored that a Bundle names. Our
// own Bundles with something stored are of a GitRepo or HelmOp, which stores it
// again; others were written by Rancher Fleet's command line, and nobody will.
func Missing(bundle *fleet.Bundle, reason string, waiting error) error {
	if bundle.Labels[fleet.RepoLabel] != "" || bundle.Labels[fleet.HelmOpLabel] != "" {
		return fault.Wait(soon, reason, waiting)
	}
	return fault.Stall("StoredByRancherFleet", fmt.Errorf(
		"what this Bundle names was stored by Rancher Fleet's command line, in a form that is not read here: write the Bundle anew with `flotilla apply` (or take spec.valuesHash and spec.contentsId off, and put values and files into it): %w", waiting))
}

func (s *Sources) keep(key string, files []source.File) Files {
	size := 0
	for _, f := range files {
		size += len(f.Path) + len(f.Data)
	}
	out := Files{Files: files, Digest: source.Digest(files)}
	s.kept.Put(key, out, size)
	return out
}
