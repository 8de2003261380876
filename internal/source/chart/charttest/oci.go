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
)

// Push puts a chart into an OCI registry without TLS, as Helm does. signature
// may be nil.
func Push(t testing.TB, repository, username, password, name, version string, archive, signature []byte) {
	t.Helper()
	ctx := context.Background()
	repo, err := remote.NewRepository(repository)
	if err != nil {
		t.Fatal(err)
	}
	repo.PlainHTTP = true
	repo.Client = &auth.Client{Credential: auth.StaticCredential(repo.Reference.Registry, auth.Credential{Username: username, Password: password})}
	push := func(mediaType string, data []byte) ocispec.Descriptor {
		d, err := oras.PushBytes(ctx, repo, mediaType, data)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	config, err := json.Marshal(map[string]string{"name": name, "version": version})
	if err != nil {
		t.Fatal(err)
	}
	options := oras.PackManifestOptions{Layers: []ocispec.Descriptor{push("application/vnd.cncf.helm.chart.content.v1.tar+gzip", archive)}}
	if signature != nil {
		options.Layers = append(options.Layers, push("application/vnd.cncf.helm.chart.provenance.v1.prov", signature))
	}
	configured := push("application/vnd.cncf.helm.config.v1+json", config)
	options.ConfigDescriptor = &configured
	manifest, err := oras.PackManifest(ctx, repo, oras.PackManifestVersion1_1, "", options)
	if err == nil {
		err = repo.Tag(ctx, manifest, strings.ReplaceAll(version, "+", "_"))
	}
	if err != nil {
		t.Fatal(err)
	}
}
