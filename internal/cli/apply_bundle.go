package cli

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"maps"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-sh/flotilla/internal/bundle"
	"github.com/flotilla-sh/flotilla/internal/source"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// compressed is the encoding of files in a Bundle that are not plain text.
const compressed = "base64+gz"

// bundle makes the Bundle of a draft, with its files in it.
func (f *applyFlags) bundle(draft *bundle.Draft) (*fleet.Bundle, error) {
	b := &fleet.Bundle{
		TypeMeta:   metav1.TypeMeta{APIVersion: fleet.SchemeGroupVersion.String(), Kind: "Bundle"},
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: draft.Name, Labels: maps.Clone(draft.Labels)},
		Spec:       *draft.Spec.DeepCopy(),
	}
	if f.registrySecret != "" {
		b.Spec.OCIRegistrySecret = f.registrySecret
	}
	if f.commit != "" {
		if b.Labels == nil {
			b.Labels = map[string]string{}
		}
		b.Labels[fleet.CommitLabel] = f.commit
	}
	for _, file := range draft.Files {
		resource, err := f.resource(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file.Path, err)
		}
		b.Spec.Resources = append(b.Spec.Resources, resource)
	}
	return b, nil
}

func (f *applyFlags) resource(file source.File) (fleet.BundleResource, error) {
	r := fleet.BundleResource{Name: file.Path, Content: string(file.Data)}
	if !f.compress && utf8.Valid(file.Data) {
		return r, nil
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(file.Data); err != nil {
		return r, err
	}
	if err := w.Close(); err != nil {
		return r, err
	}
	r.Content, r.Encoding = base64.StdEncoding.EncodeToString(packed.Bytes()), compressed
	return r, nil
}

// bundlesText is a stream of YAML documents.
func bundlesText(bundles []*fleet.Bundle) ([]byte, error) {
	var out bytes.Buffer
	for i, b := range bundles {
		text, err := yaml.Marshal(b)
		if err != nil {
			return nil, fmt.Errorf("bundle %s: %w", b.Name, err)
		}
		if i > 0 {
			out.WriteString("---\n")
		}
		out.Write(text)
	}
	return out.Bytes(), nil
}
