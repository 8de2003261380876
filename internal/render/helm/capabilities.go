package helm

import (
	"helm.sh/helm/v3/pkg/chartutil"
)

// Capabilities answers what a chart asks about its cluster. Each call may be
// recorded, so only what a chart really asks is called.
type Capabilities interface {
	// KubeVersion is the server's version, such as v1.36.3.
	KubeVersion() string
	// KubeMajor and KubeMinor are its parts.
	KubeMajor() string
	// KubeMinor is the second part of the version.
	KubeMinor() string
	// Satisfies tells whether the version fits a constraint.
	Satisfies(constraint string) bool
	// Has tells whether a group/version or group/version/Kind is served.
	Has(api string) bool
	// All returns everything that Has says yes to, sorted.
	All() []string
}

// DefaultVersion and DefaultAPIs are what Helm takes for granted where no
// cluster is known.
func DefaultVersion() string { return chartutil.DefaultCapabilities.KubeVersion.Version }

// DefaultAPIs returns the APIs of a cluster without any addition.
func DefaultAPIs() []string { return chartutil.DefaultVersionSet }

// Satisfies tells whether a Kubernetes version fits a constraint.
func Satisfies(constraint, version string) bool {
	return chartutil.IsCompatibleRange(constraint, version)
}

// recorded takes the place of .Capabilities: templates find the same names as
// on Helm's own type, as methods, which are the only way to see what is read.
type recorded struct {
	APIVersions *apiVersions
	KubeVersion *kubeVersion
	HelmVersion any
}

type apiVersions struct{ from Capabilities }

// Has is called by templates as .Capabilities.APIVersions.Has.
func (a *apiVersions) Has(api string) bool { return a.from.Has(api) }

type kubeVersion struct{ from Capabilities }

// Version, GitVersion, Major, Minor and String are called by templates.
func (k *kubeVersion) Version() string { return k.from.KubeVersion() }

// GitVersion is the older name of Version.
func (k *kubeVersion) GitVersion() string { return k.from.KubeVersion() }

// Major is the first part of the version.
func (k *kubeVersion) Major() string { return k.from.KubeMajor() }

// Minor is the second part of the version.
func (k *kubeVersion) Minor() string { return k.from.KubeMinor() }

// String is what a template prints.
func (k *kubeVersion) String() string { return k.from.KubeVersion() }

// capabilities returns what the templates see as .Capabilities.
func (r *run) capabilities() any {
	if r.loaded.calls.walksAPIs {
		return r.plainCapabilities()
	}
	return &recorded{
		APIVersions: &apiVersions{from: r.in.Capabilities},
		KubeVersion: &kubeVersion{from: r.in.Capabilities},
		HelmVersion: chartutil.DefaultCapabilities.HelmVersion,
	}
}

// plainCapabilities is Helm's own type, for charts that walk over the list of
// APIs or print it. They ask about everything.
func (r *run) plainCapabilities() *chartutil.Capabilities {
	from := r.in.Capabilities
	return &chartutil.Capabilities{
		KubeVersion: chartutil.KubeVersion{Version: from.KubeVersion(), Major: from.KubeMajor(), Minor: from.KubeMinor()},
		APIVersions: from.All(),
		HelmVersion: chartutil.DefaultCapabilities.HelmVersion,
	}
}
