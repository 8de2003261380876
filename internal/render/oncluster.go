package render

import (
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// ForCluster returns a request as it is sent to the agent that renders it: with
// what matters to the result, and without the files, which go their own way.
func ForCluster(req Request) Request {
	out := Request{Bundle: req.Bundle, SourceDigest: SourceDigest(&req), Options: effectiveOptions(&req.Options), Copies: req.Copies, OnCluster: true}
	// What the hub knows of the cluster the agent cannot find out.
	out.Cluster = req.Cluster
	if commitThatMatters(&req) != "" {
		out.Commit = req.Commit
	}
	return out
}

// effectiveOptions are the options that baseDigest looks at.
func effectiveOptions(o *fleet.BundleDeploymentOptions) fleet.BundleDeploymentOptions {
	out := fleet.BundleDeploymentOptions{
		TargetNamespace: o.TargetNamespace, DefaultNamespace: o.DefaultNamespace, Kustomize: o.Kustomize, YAML: o.YAML,
		TemplateManifests: o.TemplateManifests,
	}
	if h := o.Helm; h != nil {
		out.Helm = &fleet.HelmOptions{
			Chart: h.Chart, Repo: h.Repo, Version: h.Version, ReleaseName: h.ReleaseName, Values: h.Values,
			DisableDNS: h.DisableDNS, SkipSchemaValidation: h.SkipSchemaValidation,
		}
	}
	return out
}
