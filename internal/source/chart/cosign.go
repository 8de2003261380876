package chart

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"

	"github.com/flotilla-sh/flotilla/internal/source/chartref"
	"github.com/flotilla-sh/flotilla/internal/source/cosign"
)

const (
	// maxSignatures bounds the signatures of a chart that are looked at, and
	// maxReferrerPages the pages that they are looked for in.
	maxSignatures    = 32
	maxReferrerPages = 8
	// signatureLimit bounds one signature. They have a few hundred bytes, or some
	// kilobytes with what a transparency log says of them.
	signatureLimit = 256 << 10
)

// artifact is a manifest in a registry.
type artifact struct {
	ocispec.Manifest
	at  ocispec.Descriptor
	raw []byte
}

// asksCosign tells whether charts must be signed as cosign does.
func (a Access) asksCosign() bool { return len(a.CosignKeys) > 0 }

// noCosign refuses a chart that comes from where cosign signs nothing, unless the
// keyring is there to verify it.
func (s *Session) noCosign(place string) error {
	if !s.access.asksCosign() || len(s.access.Keyring) > 0 {
		return nil
	}
	return wait(ReasonUnverified, "%s is in no OCI registry, where charts can have a signature of cosign, and the keys (*%s) ask for one: "+
		"push the chart to a registry, add a %s that verifies its .prov, or take the keys away", place, suffixCosign, keyKeyring)
}

// search looks for a signature of a manifest.
type search struct {
	*registry
	keys    cosign.Keys
	subject cosign.Subject
	// looked counts the signatures, and why says why they do not count.
	looked int
	why    []string
}

// verifyCosign checks that one of the keys has signed a manifest.
func (s *Session) verifyCosign(ctx context.Context, r *registry, what string, m *artifact) error {
	keys, err := cosign.ParseKeys(s.access.CosignKeys)
	if err != nil {
		return stall(reasonSecret, "the keys (*%s): %w", suffixCosign, err)
	}
	look := &search{registry: r, keys: keys, subject: cosign.Subject{Digest: m.at.Digest, Manifest: m.raw}}
	for _, form := range []func(context.Context) (bool, error){look.tagged, func(ctx context.Context) (bool, error) { return look.referring(ctx, m.at) }} {
		if good, err := form(ctx); good || err != nil {
			return err
		}
	}
	return look.unsigned(what)
}

// unsigned says what was looked for and found.
func (f *search) unsigned(what string) error {
	place := strings.TrimPrefix(chartref.Place(f.url), "oci://")
	if name, _, tagged := strings.Cut(place, "@"); tagged {
		place = name
	}
	found := "there is none"
	if f.looked > 0 {
		found = fmt.Sprintf("of the %d that were looked at none counts: %s", f.looked, strings.Join(f.why, "; "))
	}
	of := "the key"
	if len(f.keys) > 1 {
		of = fmt.Sprintf("one of the %d keys", len(f.keys))
	}
	return wait(ReasonUnverified, "%s (%s) has no signature of cosign by %s (*%s), neither below the tag %s nor as a referrer of the type %s: %s; "+
		"sign it: cosign sign --key cosign.key %s@%s", what, f.subject.Digest, of, suffixCosign, f.subject.Tag(), cosign.MediaBundle, found, place, f.subject.Digest)
}

// no notes why a signature does not count. Equal reasons are told once.
func (f *search) no(err error) {
	if text := err.Error(); len(f.why) < 4 && (len(f.why) == 0 || f.why[len(f.why)-1] != text) {
		f.why = append(f.why, text)
	}
}

// tagged looks at the signatures of the first form, the layers of one manifest
// with a tag of its own.
func (f *search) tagged(ctx context.Context) (bool, error) {
	at, err := f.repo.Resolve(ctx, f.subject.Tag())
	if errors.Is(err, errdef.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, f.explain(ctx, err)
	}
	m, err := f.read(ctx, at)
	if err != nil || m == nil {
		return false, err
	}
	layers := slices.DeleteFunc(m.Layers, func(d ocispec.Descriptor) bool { return d.MediaType != cosign.MediaPayload })
	for _, layer := range layers[:min(len(layers), maxSignatures)] {
		f.looked++
		good, err := f.payload(ctx, layer)
		if good || err != nil {
			return good, err
		}
	}
	return false, nil
}

func (f *search) payload(ctx context.Context, layer ocispec.Descriptor) (bool, error) {
	payload, err := f.blob(ctx, layer)
	if err != nil || payload == nil {
		return false, err
	}
	err = f.keys.Payload(payload, layer.Annotations[cosign.AnnotationSignature], f.subject)
	if errors.Is(err, cosign.ErrOtherKey) && layer.Annotations[cosign.AnnotationCertificate] != "" {
		err = cosign.ErrKeyless
	}
	return f.counts(err), nil
}

func (f *search) counts(err error) bool {
	if err != nil {
		f.no(err)
	}
	return err == nil
}

var errEnough = errors.New("enough")

// referring looks at the signatures of the newer form, manifests that refer to
// what they sign. Where a registry keeps no list of these, clients do, and some
// name there the type of the configuration, which tells nothing.
func (f *search) referring(ctx context.Context, subject ocispec.Descriptor) (bool, error) {
	var sure, perhaps []ocispec.Descriptor
	f.repo.ReferrerListMaxPages = maxReferrerPages
	err := f.repo.Referrers(ctx, subject, "", func(page []ocispec.Descriptor) error {
		for _, d := range page {
			switch predicate := d.Annotations[cosign.AnnotationPredicate]; {
			case predicate != "" && predicate != cosign.PredicateSignature:
			case d.ArtifactType == cosign.MediaBundle && len(sure) < maxSignatures:
				sure = append(sure, d)
			case (d.ArtifactType == "" || d.ArtifactType == ocispec.MediaTypeEmptyJSON) && len(perhaps) < maxSignatures:
				perhaps = append(perhaps, d)
			}
		}
		if len(sure) == maxSignatures {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) && !errors.Is(err, errdef.ErrTooManyPages) {
		return false, f.explain(ctx, err)
	}
	all := append(sure, perhaps...)
	for _, d := range all[:min(len(all), maxSignatures)] {
		f.looked++
		good, err := f.bundle(ctx, d)
		if good || err != nil {
			return good, err
		}
	}
	return false, nil
}

func (f *search) bundle(ctx context.Context, at ocispec.Descriptor) (bool, error) {
	m, err := f.read(ctx, at)
	if err != nil || m == nil {
		return false, err
	}
	layer := layer(m, cosign.MediaBundle)
	if layer == nil {
		f.looked-- // something else that refers to the chart
		return false, nil
	}
	data, err := f.blob(ctx, *layer)
	if err != nil || data == nil {
		return false, err
	}
	return f.counts(f.keys.Bundle(data, f.subject)), nil
}

// read reads a manifest; nil where it is none.
func (f *search) read(ctx context.Context, at ocispec.Descriptor) (*ocispec.Manifest, error) {
	raw, err := f.part(ctx, f.repo.Manifests(), at)
	if err != nil || raw == nil {
		return nil, err
	}
	m := &ocispec.Manifest{}
	if json.Unmarshal(raw, m) != nil {
		f.no(errors.New("in a damaged manifest"))
		return nil, nil //nolint:nilnil // as it says
	}
	return m, nil
}

func (f *search) blob(ctx context.Context, at ocispec.Descriptor) ([]byte, error) {
	return f.part(ctx, f.repo.Blobs(), at)
}

// part reads a part of a signature. One that is too large or not there counts as
// no signature; a server that fails is an error.
func (f *search) part(ctx context.Context, from content.Fetcher, at ocispec.Descriptor) ([]byte, error) {
	if at.Size > signatureLimit {
		f.no(errors.New("too large for a signature"))
		return nil, nil
	}
	raw, err := content.FetchAll(ctx, from, at)
	for _, broken := range []error{errdef.ErrNotFound, content.ErrInvalidDescriptorSize, content.ErrMismatchedDigest, content.ErrTrailingData} {
		if errors.Is(err, broken) {
			f.no(errors.New("incomplete or damaged in the registry"))
			return nil, nil
		}
	}
	if err != nil {
		return nil, f.explain(ctx, err)
	}
	return raw, nil
}
