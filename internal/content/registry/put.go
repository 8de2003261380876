package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/errdef"

	"github.com/flotilla-sh/flotilla/internal/content"
)

// Put stores a root and those of its chunks that are not there yet. The secret
// ones are left out.
func (r *Registry) Put(ctx context.Context, enc content.Encoded) error {
	ctx, leave, err := r.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
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
