package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"k8s.io/utils/clock"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/flotilla-sh/flotilla/internal/content"
)

const (
	artifactType = "application/vnd.flotilla.content.v1"
	rootType     = "application/vnd.flotilla.content.root.v1+gzip"
	packType     = "application/vnd.flotilla.content.chunks.v1"
	// holdsAnnotation lists on a layer the short digests of its chunks,
	// nameAnnotation on a manifest the root's name.
	holdsAnnotation = "sh.flotilla.holds"
	nameAnnotation  = "sh.flotilla.name"
	// maxBlob bounds what is read of one blob.
	maxBlob = 8 << 20
)

// Registry is a repository with content.
type Registry struct {
	repo   *remote.Repository
	access Access

	// turn is held by who asks the registry or changes what follows.
	turn chan struct{}
	// known are the roots that were put or seen by this process.
	known map[string]bool
	// unused is when a sweep first saw that nothing refers to a root.
	unused map[string]time.Time
	// layers are the packs by the short digests of their chunks; they are read
	// when first needed.
	layers map[string]*layer
	loaded bool
	// failed is the last error, which stands until a while has passed: who waits
	// for a registry that does not answer must not wait in line.
	failed error
	until  time.Time
	clock  clock.PassiveClock
}

// layer is a pack in the registry.
type layer struct {
	descriptor ocispec.Descriptor
	holds      []string
}

// Open returns the repository that an access leads to. It asks it nothing.
func Open(a Access, c clock.PassiveClock) (*Registry, error) {
	repo, err := a.repository()
	if err != nil {
		return nil, err
	}
	return &Registry{repo: repo, access: a, turn: make(chan struct{}, 1), known: map[string]bool{}, unused: map[string]time.Time{}, clock: c}, nil
}

// load reads once which chunks are stored. The caller holds the lock.
func (r *Registry) load(ctx context.Context) error {
	if r.loaded {
		return nil
	}
	tags, err := r.tags(ctx)
	if err != nil {
		return err
	}
	for _, tag := range tags {
		manifest, err := r.manifest(ctx, tag)
		if errors.Is(err, errdef.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		r.remember(layersOf(manifest))
	}
	r.loaded = true
	return nil
}

func layersOf(m ocispec.Manifest) []*layer {
	var out []*layer
	for _, d := range m.Layers {
		if d.MediaType == packType && d.Annotations[holdsAnnotation] != "" {
			out = append(out, &layer{d, strings.Split(d.Annotations[holdsAnnotation], ",")})
		}
	}
	return out
}

// tags lists the roots that are stored; none where the repository was never
// written to.
func (r *Registry) tags(ctx context.Context) ([]string, error) {
	var all []string
	err := r.repo.Tags(ctx, "", func(tags []string) error {
		all = append(all, tags...)
		return nil
	})
	if isStatus(err, http.StatusNotFound) || errors.Is(err, errdef.ErrNotFound) {
		return nil, nil
	}
	return all, err
}

// manifest reads the manifest of a root.
func (r *Registry) manifest(ctx context.Context, tag string) (ocispec.Manifest, error) {
	var m ocispec.Manifest
	descriptor, body, err := r.repo.Manifests().FetchReference(ctx, tag)
	if err != nil {
		return m, err
	}
	defer body.Close()
	raw, err := verified(body, descriptor)
	if err != nil {
		return m, err
	}
	return m, json.Unmarshal(raw, &m)
}

// verified reads what a descriptor describes.
func verified(body io.Reader, d ocispec.Descriptor) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(body, maxBlob+1))
	if err != nil {
		return nil, err
	}
	if len(raw) > maxBlob {
		return nil, fmt.Errorf("%s is larger than %d MiB", d.Digest, maxBlob>>20)
	}
	if got := digest.FromBytes(raw); got != d.Digest {
		return nil, fmt.Errorf("%s is damaged: its digest is %s", d.Digest, got)
	}
	return raw, nil
}

// Has tells whether a root is stored. It looks once per process, unless a sweep
// saw that nothing uses it.
func (r *Registry) Has(ctx context.Context, name string) (bool, error) {
	ctx, leave, err := r.enter(ctx)
	if err != nil {
		return false, err
	}
	defer leave()
	if r.known[name] {
		return true, nil
	}
	if r.clock.Now().Before(r.until) {
		return false, r.failed
	}
	_, err = r.repo.Resolve(ctx, name)
	if errors.Is(err, errdef.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, r.fail(r.explain("look whether content "+name+" is stored", err))
	}
	if r.unused[name].IsZero() {
		r.known[name] = true
	}
	return true, nil
}

// Get reads a root, or a layer by its digest.
func (r *Registry) Get(ctx context.Context, ref content.Ref) (content.Parcel, error) {
	var parcel content.Parcel
	if strings.Contains(ref.Name, ":") {
		pack, err := r.blob(ctx, ref.Name)
		parcel.Pack = pack
		return parcel, r.explain("read it", err)
	}
	manifest, err := r.manifest(ctx, ref.Name)
	if err != nil {
		return parcel, r.explain("read it", err)
	}
	parcel.Data, err = r.blob(ctx, manifest.Config.Digest.String())
	for _, l := range manifest.Layers {
		parcel.Others = append(parcel.Others, l.Digest.String())
	}
	return parcel, r.explain("read it", err)
}

func (r *Registry) blob(ctx context.Context, digest string) ([]byte, error) {
	descriptor, body, err := r.repo.Blobs().FetchReference(ctx, digest)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return verified(body, descriptor)
}
