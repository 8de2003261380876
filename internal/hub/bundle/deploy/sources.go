package deploy

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"sort"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flotilla-sh/flotilla/internal/content"
	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/render"
	"github.com/flotilla-sh/flotilla/internal/render/cache"
	"github.com/flotilla-sh/flotilla/internal/source"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

const (
	// sourceRoom is the memory for the files of bundles that were used last.
	sourceRoom = 32 << 20
	// maxResource bounds what one inline resource may decompress to.
	maxResource = 64 << 20
)

// files are the files of a bundle and their digest.
type files struct {
	files  []source.File
	digest string
}

// sources reads the files of bundles and keeps those that were used last.
type sources struct {
	once sync.Once
	kept *cache.LRU[files]
}

func (s *sources) of(ctx context.Context, store *content.Store, bundle *fleet.Bundle) (files, error) {
	s.once.Do(func() { s.kept = cache.New[files](sourceRoom) })
	if bundle.Spec.ContentsID == "" {
		return inline(bundle)
	}
	key := bundle.Namespace + "/" + bundle.Spec.ContentsID
	if kept, ok := s.kept.Get(key); ok {
		return kept, nil
	}
	root := content.Ref{Name: bundle.Spec.ContentsID, Secret: true}
	stored, err := content.FetchFiles(ctx, store.In(bundle.Namespace), root)
	if apierrors.IsNotFound(err) {
		return files{}, fault.Wait(soon, "WaitingForSource", fmt.Errorf("the stored source of the bundle is not there (yet): %w", err))
	}
	if err != nil {
		return files{}, err
	}
	out := files{files: stored, digest: render.FilesDigest(stored)}
	s.kept.Put(key, out, size(stored))
	return out, nil
}

func size(all []source.File) int {
	n := 0
	for _, f := range all {
		n += len(f.Path) + len(f.Data)
	}
	return n
}

// inline takes in the resources of a bundle that was written by hand.
func inline(bundle *fleet.Bundle) (files, error) {
	if len(bundle.Spec.Resources) == 0 {
		return files{}, fault.Stall("NoSource", errNoSource)
	}
	var out files
	for i, r := range bundle.Spec.Resources {
		data, err := decode(r)
		if err != nil {
			return files{}, fault.Stall("InvalidResource", fmt.Errorf("spec.resources[%d] (%s): %w", i, r.Name, err))
		}
		name := r.Name
		if name == "" {
			name = fmt.Sprintf("resource%03d.yaml", i)
		}
		out.files = append(out.files, source.File{Path: name, Data: data})
	}
	sort.SliceStable(out.files, func(i, j int) bool { return out.files[i].Path < out.files[j].Path })
	out.digest = render.FilesDigest(out.files)
	return out, nil
}

func decode(r fleet.BundleResource) ([]byte, error) {
	switch r.Encoding {
	case "":
		return []byte(r.Content), nil
	case "base64+gz":
		packed, err := base64.StdEncoding.DecodeString(r.Content)
		if err != nil {
			return nil, fmt.Errorf("is not base64: %w", err)
		}
		reader, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			return nil, fmt.Errorf("is not gzip: %w", err)
		}
		data, err := io.ReadAll(io.LimitReader(reader, maxResource+1))
		if err != nil {
			return nil, fmt.Errorf("is damaged: %w", err)
		}
		if len(data) > maxResource {
			return nil, fmt.Errorf("is larger than %d MiB: split it", maxResource>>20)
		}
		return data, nil
	default:
		return nil, fmt.Errorf("encoding %q is not known: use base64+gz or none", r.Encoding)
	}
}
