package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/flotilla-sh/flotilla/internal/content"
	"github.com/flotilla-sh/flotilla/internal/fault"
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

// Reasons of errors.
const (
	ReasonUnreachable  = "RegistryUnreachable"
	ReasonUnauthorized = "RegistryUnauthorized"
)

// Pauses after an error of a registry, at least: a fleet that waits for one must
// not come back at once.
const (
	unreachableRetry  = 30 * time.Second
	unauthorizedRetry = 2 * time.Minute
	failedFor         = 5 * time.Second
	// jitter is by how much more they may be longer.
	jitter = 0.5
)

// Registry is a repository with content.
type Registry struct {
	repo   *remote.Repository
	access Access

	mu sync.Mutex
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
	return &Registry{repo: repo, access: a, known: map[string]bool{}, unused: map[string]time.Time{}, clock: c}, nil
}

// Put stores a root and those of its chunks that are not there yet. The secret
// ones are left out.
func (r *Registry) Put(ctx context.Context, enc content.Encoded) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := enc.Root.Name
	delete(r.unused, name)
	if r.known[name] {
		return nil
	}
	if r.clock.Now().Before(r.until) {
		return r.failed
	}
	if err := r.put(ctx, enc); err != nil {
		// Some of what was counted on may be gone.
		r.loaded, r.layers = false, nil
		return r.fail(r.explain("store content "+name, err))
	}
	r.known[name] = true
	return nil
}

// fail remembers an error that the next caller would only meet again.
func (r *Registry) fail(err error) error {
	if Unreachable(err) || Unauthorized(err) {
		r.failed, r.until = err, r.clock.Now().Add(failedFor)
	}
	return err
}

func (r *Registry) put(ctx context.Context, enc content.Encoded) error {
	name := enc.Root.Name
	if _, err := r.repo.Resolve(ctx, name); err == nil {
		return nil
	} else if !errors.Is(err, errdef.ErrNotFound) {
		return err
	}
	layers, err := r.pushChunks(ctx, enc.Open())
	if err != nil {
		return err
	}
	config, err := r.push(ctx, rootType, enc.Root.Data)
	if err != nil {
		return err
	}
	manifest, err := json.Marshal(ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
		ArtifactType: artifactType, Config: config, Layers: descriptors(layers),
		Annotations: map[string]string{nameAnnotation: name},
	})
	if err != nil {
		return err
	}
	descriptor := describe(ocispec.MediaTypeImageManifest, manifest)
	if err := r.repo.Manifests().PushReference(ctx, descriptor, bytes.NewReader(manifest), name); err != nil {
		return err
	}
	r.remember(layers)
	return nil
}

// pushChunks stores the chunks that no layer has, and returns the layers that
// have all of them.
func (r *Registry) pushChunks(ctx context.Context, chunks []content.Blob) ([]*layer, error) {
	if len(chunks) == 0 {
		return nil, nil
	}
	if err := r.load(ctx); err != nil {
		return nil, err
	}
	byDigest := map[string]*layer{}
	others, groups := content.Deal(chunks, func(chunk string) (string, int) {
		at := r.layers[chunk]
		if at == nil {
			return "", 0
		}
		byDigest[at.descriptor.Digest.String()] = at
		return at.descriptor.Digest.String(), len(at.holds)
	})
	var layers []*layer
	for _, other := range others {
		layers = append(layers, byDigest[other])
	}
	for _, group := range groups {
		holds := content.Shorts(group)
		descriptor, err := r.push(ctx, packType, content.Pack(group))
		if err != nil {
			return nil, err
		}
		descriptor.Annotations = map[string]string{holdsAnnotation: strings.Join(holds, ",")}
		layers = append(layers, &layer{descriptor, holds})
	}
	return layers, nil
}

func descriptors(layers []*layer) []ocispec.Descriptor {
	out := []ocispec.Descriptor{} // a manifest needs a list
	for _, l := range layers {
		out = append(out, l.descriptor)
	}
	return out
}

func (r *Registry) remember(layers []*layer) {
	if r.layers == nil {
		r.layers = map[string]*layer{}
	}
	for _, l := range layers {
		for _, chunk := range l.holds {
			r.layers[chunk] = l
		}
	}
}

func describe(mediaType string, data []byte) ocispec.Descriptor {
	return ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(data), Size: int64(len(data))}
}

// push stores a blob that is not there yet.
func (r *Registry) push(ctx context.Context, mediaType string, data []byte) (ocispec.Descriptor, error) {
	descriptor := describe(mediaType, data)
	there, err := r.repo.Blobs().Exists(ctx, descriptor)
	if err != nil || there {
		return descriptor, err
	}
	return descriptor, r.repo.Blobs().Push(ctx, descriptor, bytes.NewReader(data))
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
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known[name] {
		return true, nil
	}
	if r.clock.Now().Before(r.until) {
		return false, r.failed
	}
	_, err := r.repo.Resolve(ctx, name)
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

func isStatus(err error, codes ...int) bool {
	answer, ok := errors.AsType[*errcode.ErrorResponse](err)
	if !ok {
		return false
	}
	for _, code := range codes {
		if answer.StatusCode == code {
			return true
		}
	}
	return false
}

// Unauthorized tells whether a registry refused the credentials.
func Unauthorized(err error) bool {
	return isStatus(err, http.StatusUnauthorized, http.StatusForbidden) || errors.Is(err, auth.ErrBasicCredentialNotFound)
}

// explain says what went wrong at which registry, and what to do about it.
func (r *Registry) explain(what string, err error) error {
	at := "registry " + r.access.Reference
	switch {
	case err == nil:
		return nil
	case Unauthorized(err):
		return fault.Wait(wait.Jitter(unauthorizedRetry, jitter), ReasonUnauthorized, fmt.Errorf(
			"%s: %s refuses the credentials of %q: correct the username and password in its Secret, or what they may do there: %w", what, at, r.access.Username, err))
	case Unreachable(err):
		return fault.Wait(wait.Jitter(unreachableRetry, jitter), ReasonUnreachable, fmt.Errorf("%s: %s does not answer: %w", what, at, err))
	}
	return fmt.Errorf("%s: %s: %w", what, at, err)
}
