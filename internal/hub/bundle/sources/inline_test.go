package sources

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/source"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

func packed(data []byte) string {
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	_, _ = w.Write(data)
	_ = w.Close()
	return base64.StdEncoding.EncodeToString(buf.Bytes())
}

func TestInline(t *testing.T) {
	whole, half := packed([]byte("kind: ConfigMap")), packed(make([]byte, 16<<20))
	for name, tt := range map[string]struct {
		resources []fleet.BundleResource
		want      []source.File
		err       string
	}{
		"none": {err: errNoSource.Error()},
		"plain text, sorted": {
			resources: []fleet.BundleResource{{Name: "b.yaml", Content: "b"}, {Name: "a.yaml", Content: "a"}},
			want:      []source.File{{Path: "a.yaml", Data: []byte("a")}, {Path: "b.yaml", Data: []byte("b")}},
		},
		"without a name": {
			resources: []fleet.BundleResource{{Content: "a"}},
			want:      []source.File{{Path: "resource000.yaml", Data: []byte("a")}},
		},
		"packed": {
			resources: []fleet.BundleResource{{Name: "a.yaml", Content: whole, Encoding: "base64+gz"}},
			want:      []source.File{{Path: "a.yaml", Data: []byte("kind: ConfigMap")}},
		},
		"unknown encoding": {
			resources: []fleet.BundleResource{{}, {Name: "a.yaml", Encoding: "zip"}},
			err:       `spec.resources[1] (a.yaml): encoding "zip" is not known: use base64+gz or none`,
		},
		"not base64": {
			resources: []fleet.BundleResource{{Name: "a", Content: "%", Encoding: "base64+gz"}},
			err:       "spec.resources[0] (a): is not base64",
		},
		"not gzip": {
			resources: []fleet.BundleResource{{Name: "a", Content: "AAAA", Encoding: "base64+gz"}},
			err:       "spec.resources[0] (a): is not gzip",
		},
		"cut short": {
			resources: []fleet.BundleResource{{Name: "a", Content: whole[:24], Encoding: "base64+gz"}},
			err:       "spec.resources[0] (a): is damaged",
		},
		"a bomb": {
			resources: []fleet.BundleResource{{Name: "a", Content: packed(make([]byte, maxInline+1)), Encoding: "base64+gz"}},
			err:       "spec.resources[0] (a): with it the resources of the bundle are larger than 32 MiB",
		},
		"many that are large together": {
			resources: []fleet.BundleResource{
				{Name: "a", Content: half, Encoding: "base64+gz"}, {Name: "b", Content: half, Encoding: "base64+gz"}, {Name: "c", Content: "x"},
			},
			err: "spec.resources[2] (c): with it the resources of the bundle are larger than 32 MiB",
		},
	} {
		t.Run(name, func(t *testing.T) {
			bundle := &fleet.Bundle{Spec: fleet.BundleSpec{Resources: tt.resources}}
			got, err := inline(bundle)
			if tt.err != "" {
				if err == nil || !strings.HasPrefix(err.Error(), tt.err) || fault.KindOf(err) != fault.Stalled {
					t.Fatalf("error %v, want a stalled one: %s", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got.Files); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestInlineDigestIsOfTheFiles(t *testing.T) {
	text := fleet.BundleResource{Name: "a.yaml", Content: "a"}
	zipped := fleet.BundleResource{Name: "a.yaml", Content: packed([]byte("a")), Encoding: "base64+gz"}
	other := fleet.BundleResource{Name: "a.yaml", Content: "b"}
	digest := func(r fleet.BundleResource) string {
		got, err := inline(&fleet.Bundle{Spec: fleet.BundleSpec{Resources: []fleet.BundleResource{r}}})
		if err != nil {
			t.Fatal(err)
		}
		return got.Digest
	}
	if digest(text) != digest(zipped) || digest(text) == digest(other) {
		t.Error("equal files have equal digests, and others do not")
	}
}
