package render

import (
	"encoding/json"
	"path"
	"strings"

	"github.com/flotilla-sh/flotilla/internal/digest"
	"github.com/flotilla-sh/flotilla/internal/render/raw"
	"github.com/flotilla-sh/flotilla/internal/source"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// generation is part of every input digest. Raise it with a change that makes
// this package render the same input differently.
const generation = "1"

// SourceDigest returns the digest of the request's files, from the request
// where it is known.
func SourceDigest(req *Request) string {
	if req.SourceDigest != "" {
		return req.SourceDigest
	}
	return source.Digest(req.Files)
}

// InputDigest names everything that the result of a request depends on, given
// the questions that its render asks: the files, the options that matter to a
// render, and the cluster's answers to these questions alone. Requests with
// equal digests have equal results.
func InputDigest(req *Request, asked []string) (string, error) {
	base, err := baseDigest(req)
	if err != nil {
		return "", err
	}
	return withAnswers(base, asked, req), nil
}

// withAnswers completes a base digest by questions and their answers.
func withAnswers(base string, asked []string, req *Request) string {
	parts := [][]byte{[]byte(base)}
	for i, answer := range Answers(asked, req) {
		parts = append(parts, []byte(asked[i]), []byte(answer))
	}
	return digest.Of(parts...)
}

// effective are the options that change what a render returns.
type effective struct {
	Generation, Files, Bundle, Commit string
	Namespace, DefaultNamespace       string
	Chart, Release, Kustomize         string
	Values                            map[string]any
	Overlays                          []string
	DisableDNS, SkipSchemaValidation  bool
	Copies                            []Object `json:",omitempty"`
	TemplateManifests                 bool     `json:",omitempty"`
}

// baseDigest is the digest of what does not depend on the cluster.
func baseDigest(req *Request) (string, error) {
	if req.base != "" {
		return req.base, nil
	}
	options := &req.Options
	e := effective{
		Generation: generation, Files: SourceDigest(req), Bundle: req.Bundle, Commit: commitThatMatters(req),
		Namespace: options.TargetNamespace, DefaultNamespace: options.DefaultNamespace, Overlays: overlays(options), Copies: req.Copies,
		TemplateManifests: options.TemplateManifests,
	}
	if options.Kustomize != nil && options.Kustomize.Dir != "" {
		e.Kustomize = path.Clean(options.Kustomize.Dir)
	}
	e.addHelm(options.Helm)
	text, err := json.Marshal(e)
	if err != nil {
		return "", err
	}
	return digest.OfBytes(text), nil
}

func (e *effective) addHelm(options *fleet.HelmOptions) {
	if options == nil {
		return
	}
	e.Chart = strings.Join([]string{options.Chart, options.Repo, options.Version}, "\n")
	if options.Chart == "" && options.Repo == "" {
		e.Chart = ""
	}
	e.Release = options.ReleaseName
	e.DisableDNS, e.SkipSchemaValidation = options.DisableDNS, options.SkipSchemaValidation
	if options.Values != nil && len(options.Values.Data) > 0 {
		e.Values = options.Values.Data
	}
}

// commitThatMatters is the commit where a template can see it, in the version
// of a synthesized chart. Elsewhere a commit that changes no file changes
// nothing.
func commitThatMatters(req *Request) string {
	if len(raw.Templates(req.Files)) == 0 {
		return ""
	}
	for _, file := range req.Files {
		if file.Path == "Chart.yaml" {
			return ""
		}
	}
	return raw.Version(req.Commit)
}
