package charttest

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/flotilla-sh/flotilla/internal/source/cosign"
)

// Repository is a repository in an OCI registry without TLS.
type Repository struct {
	t    testing.TB
	repo *remote.Repository
}

// OpenRepository opens a repository with a login.
func OpenRepository(t testing.TB, name, username, password string) *Repository {
	t.Helper()
	repo, err := remote.NewRepository(name)
	must(t, err)
	repo.PlainHTTP = true
	repo.Client = &auth.Client{Credential: auth.StaticCredential(repo.Reference.Registry, auth.Credential{Username: username, Password: password})}
	return &Repository{t, repo}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (r *Repository) push(mediaType string, data []byte) ocispec.Descriptor {
	r.t.Helper()
	d, err := oras.PushBytes(context.Background(), r.repo, mediaType, data)
	must(r.t, err)
	return d
}

// Push puts a chart into an OCI registry without TLS, as Helm does. signature
// may be nil.
func Push(t testing.TB, repository, username, password, name, version string, archive, signature []byte) {
	t.Helper()
	OpenRepository(t, repository, username, password).Push(name, version, archive, signature)
}

// Push puts in a chart, as Helm does, and returns its manifest. signature may be
// nil.
func (r *Repository) Push(name, version string, archive, signature []byte) ocispec.Descriptor {
	r.t.Helper()
	ctx := context.Background()
	config, err := json.Marshal(map[string]string{"name": name, "version": version})
	must(r.t, err)
	options := oras.PackManifestOptions{Layers: []ocispec.Descriptor{r.push("application/vnd.cncf.helm.chart.content.v1.tar+gzip", archive)}}
	if signature != nil {
		options.Layers = append(options.Layers, r.push("application/vnd.cncf.helm.chart.provenance.v1.prov", signature))
	}
	configured := r.push("application/vnd.cncf.helm.config.v1+json", config)
	options.ConfigDescriptor = &configured
	manifest, err := oras.PackManifest(ctx, r.repo, oras.PackManifestVersion1_1, "", options)
	must(r.t, err)
	must(r.t, r.repo.Tag(ctx, manifest, strings.ReplaceAll(version, "+", "_")))
	return manifest
}

// Manifest reads a manifest.
func (r *Repository) Manifest(at ocispec.Descriptor) []byte {
	r.t.Helper()
	_, raw, err := oras.FetchBytes(context.Background(), r.repo, at.Digest.String(), oras.DefaultFetchBytesOptions)
	must(r.t, err)
	return raw
}

// Signed is a payload and its signature, in base64, as cosign's first form has
// them.
type Signed struct {
	Payload   []byte
	Signature string
}

// Sign stores signatures of a manifest in cosign's first form, in place of those
// that are there.
func (r *Repository) Sign(of ocispec.Descriptor, all ...Signed) {
	r.t.Helper()
	ctx := context.Background()
	options := oras.PackManifestOptions{}
	for _, one := range all {
		layer := r.push(cosign.MediaPayload, one.Payload)
		layer.Annotations = map[string]string{cosign.AnnotationSignature: one.Signature}
		options.Layers = append(options.Layers, layer)
	}
	config := r.push("application/vnd.oci.image.config.v1+json", []byte("{}"))
	options.ConfigDescriptor = &config
	manifest, err := oras.PackManifest(ctx, r.repo, oras.PackManifestVersion1_0, "", options)
	must(r.t, err)
	must(r.t, r.repo.Tag(ctx, manifest, cosign.Subject{Digest: of.Digest}.Tag()))
}

// Refer stores bundles that refer to a manifest, as cosign's newer form has it.
func (r *Repository) Refer(to ocispec.Descriptor, bundles ...[]byte) []ocispec.Descriptor {
	r.t.Helper()
	var all []ocispec.Descriptor
	for _, data := range bundles {
		options := oras.PackManifestOptions{
			Subject: &to, Layers: []ocispec.Descriptor{r.push(cosign.MediaBundle, data)},
			ManifestAnnotations: map[string]string{cosign.AnnotationPredicate: cosign.PredicateSignature},
		}
		at, err := oras.PackManifest(context.Background(), r.repo, oras.PackManifestVersion1_1, cosign.MediaBundle, options)
		must(r.t, err)
		all = append(all, at)
	}
	return all
}
