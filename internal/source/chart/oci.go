package chart

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/flotilla-sh/flotilla/internal/source/chartref"
)

// The types of what a chart in a registry consists of.
const (
	mediaChart      = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
	mediaChartOld   = "application/tar+gzip"
	mediaProvenance = "application/vnd.cncf.helm.chart.provenance.v1.prov"
)

const (
	// manifestLimit bounds manifests and signatures.
	manifestLimit = 4 << 20
	// maxTags bounds the tags that are looked through.
	maxTags = 20_000
)

// registry is one repository of an OCI registry.
type registry struct {
	client *client
	access Access
	url    string
	repo   *remote.Repository
}

// openRegistry opens oci://host/path with an access that may hold credentials.
func openRegistry(c *client, url string, a Access) (*registry, error) {
	repo, err := remote.NewRepository(strings.TrimPrefix(url, "oci://"))
	if err != nil {
		return nil, stall(ReasonInvalid, "%s names no repository of an OCI registry", chartref.Place(url))
	}
	asking := &auth.Client{Client: c.http, Cache: auth.NewCache()}
	asking.SetUserAgent("flotilla")
	if a.Token != "" || a.Username != "" || a.Password != "" {
		asking.Credential = auth.StaticCredential(repo.Reference.Registry, auth.Credential{
			Username: a.Username, Password: a.Password, AccessToken: a.Token,
		})
	}
	repo.Client, repo.PlainHTTP = asking, a.PlainHTTP
	return &registry{client: c, access: a, url: url, repo: repo}, nil
}

func (r *registry) explain(ctx context.Context, err error) error {
	if answer, ok := errors.AsType[*errcode.ErrorResponse](err); ok {
		return refusal(r.url, answer.StatusCode, r.access)
	}
	if errors.Is(err, errdef.ErrNotFound) {
		return refusal(r.url, http.StatusNotFound, r.access)
	}
	if errors.Is(err, auth.ErrBasicCredentialNotFound) {
		return refusal(r.url, http.StatusUnauthorized, r.access)
	}
	return explain(ctx, r.url, err)
}

var errTags = errors.New("too many tags")

// version finds the version of a tag that is wanted.
func (r *registry) version(ctx context.Context, wanted string) (string, error) {
	if exact(wanted) {
		return wanted, nil
	}
	if _, err := pick(nil, wanted); err != nil {
		return "", err
	}
	var versions []string
	err := r.repo.Tags(ctx, "", func(tags []string) error {
		for _, tag := range tags {
			versions = append(versions, strings.ReplaceAll(tag, "_", "+"))
		}
		if len(versions) > maxTags {
			return errTags
		}
		return nil
	})
	if errors.Is(err, errTags) {
		return "", stall(ReasonTooLarge, "%s has more than %d tags: set helm.version to an exact version", r.url, maxTags)
	}
	if err != nil {
		return "", r.explain(ctx, err)
	}
	at, err := pick(versions, wanted)
	if err != nil {
		return "", err
	}
	if at < 0 {
		return "", wait(ReasonNotFound, "no version of %s fits %q%s", r.url, wanted, newest(versions))
	}
	return versions[at], nil
}

// manifest reads the manifest of a version or digest.
func (r *registry) manifest(ctx context.Context, ref chartref.Ref, version string) (*artifact, error) {
	reference := strings.ReplaceAll(version, "+", "_")
	if ref.Digest != "" {
		reference = ref.Digest
	}
	found, err := r.repo.Resolve(ctx, reference)
	if err != nil {
		return nil, r.explain(ctx, err)
	}
	raw, err := r.small(ctx, r.repo.Manifests(), found)
	if err != nil {
		return nil, err
	}
	manifest := &artifact{at: found, raw: raw}
	if json.Unmarshal(raw, &manifest.Manifest) != nil {
		return nil, wait(ReasonArchive, "the manifest of %s %s is damaged", r.url, reference)
	}
	return manifest, nil
}

// small reads what must not be large, and verifies its digest.
func (r *registry) small(ctx context.Context, from content.Fetcher, what ocispec.Descriptor) ([]byte, error) {
	if what.Size > manifestLimit {
		return nil, wait(ReasonArchive, "%s has a manifest or signature of %s: it is no chart", r.url, size(what.Size))
	}
	raw, err := content.FetchAll(ctx, from, what)
	if err != nil {
		return nil, r.explain(ctx, err)
	}
	return raw, nil
}

// layer finds a part of a chart.
func layer(m *ocispec.Manifest, types ...string) *ocispec.Descriptor {
	for _, wanted := range types {
		for i := range m.Layers {
			if m.Layers[i].MediaType == wanted {
				return &m.Layers[i]
			}
		}
	}
	return nil
}

// fetchOCI gets a chart from a registry.
func (s *Session) fetchOCI(ctx context.Context, ref chartref.Ref, a Access, to *os.File) (found, error) {
	c, err := s.client(a)
	if err != nil {
		return found{}, err
	}
	r, err := openRegistry(c, ref.URL, a)
	if err != nil {
		return found{}, err
	}
	out := found{name: chartref.Place(ref.URL)}
	if ref.Digest == "" {
		if out.version, err = r.version(ctx, ref.Version); err != nil {
			return found{}, err
		}
	}
	manifest, err := r.manifest(ctx, ref, out.version)
	if err != nil {
		return found{}, err
	}
	packed := layer(&manifest.Manifest, mediaChart, mediaChartOld)
	if packed == nil {
		return found{}, wait(ReasonArchive, "%s is no Helm chart: its manifest has no layer of the type %s", r.url, mediaChart)
	}
	out.name = strings.TrimSpace(out.name + " " + out.version)
	if s.access.asksCosign() {
		if err := s.verifyCosign(ctx, r, out.name, manifest); err != nil {
			return found{}, err
		}
	}
	if packed.Size > s.limits.Size {
		return found{}, tooLarge(out.name, s.limits.Size)
	}
	body, err := r.repo.Blobs().Fetch(ctx, *packed)
	if err != nil {
		return found{}, r.explain(ctx, err)
	}
	defer func() { _ = body.Close() }()
	verified := content.NewVerifyReader(body, *packed)
	if _, err := io.Copy(to, verified); err != nil {
		return found{}, r.explain(ctx, err)
	}
	if err := verified.Verify(); err != nil {
		return found{}, r.explain(ctx, err)
	}
	if len(s.access.Keyring) > 0 {
		err = s.verifyOCI(ctx, r, &manifest.Manifest, out, to)
	}
	return out, err
}
