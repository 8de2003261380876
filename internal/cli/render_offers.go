package cli

import (
	"regexp"
	"runtime/debug"
	"strings"

	"github.com/flotilla-sh/flotilla/internal/render"
	"github.com/flotilla-sh/flotilla/internal/render/helm"
)

var (
	versionText = regexp.MustCompile(`^v?(\d+\.\d+)(\.\d+)?([-+].*)?$`)
	kindText    = regexp.MustCompile(`^([^/\s]+/)?[^/\s]+/[A-Z]\w*$`)
	groupText   = regexp.MustCompile(`^([^/\s:]+/)?v\d\w*$`)
)

// capabilities is what a cluster offers to renders, as flags say it.
func capabilities(version string, apis []string) (render.Capabilities, error) {
	offers := render.Capabilities{KubeVersion: newestKubernetes()}
	if version != "" {
		parts := versionText.FindStringSubmatch(version)
		if parts == nil {
			return offers, usagef("--kube-version %s: use a version such as v1.36.3", version)
		}
		patch := parts[2]
		if patch == "" {
			patch = ".0"
		}
		offers.KubeVersion = "v" + parts[1] + patch + parts[3]
	}
	if len(apis) == 0 {
		return offers, nil
	}
	// Who names one kind does not mean to take Kubernetes' own away.
	for _, api := range helm.DefaultAPIs() {
		if kindText.MatchString(api) {
			offers.APIs = append(offers.APIs, apiOf(api))
		}
	}
	for _, api := range apis {
		name, cluster := strings.CutSuffix(api, ":Cluster")
		if groupText.MatchString(api) {
			offers.APIs = append(offers.APIs, render.API{GroupVersion: api})
			continue
		}
		if !kindText.MatchString(name) {
			return offers, usagef("--api-versions %s: use group/version or group/version/Kind, such as monitoring.coreos.com/v1/ServiceMonitor", api)
		}
		offer := apiOf(name)
		offer.Namespaced = !cluster
		offers.APIs = append(offers.APIs, offer)
	}
	return offers, nil
}

// newestKubernetes is the version that the Kubernetes libraries of this program
// are of.
func newestKubernetes() string {
	const library = "k8s.io/apimachinery"
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, module := range build.Deps {
			if rest, isLibrary := strings.CutPrefix(module.Version, "v0."); module.Path == library && isLibrary {
				return "v1." + rest
			}
		}
	}
	return helm.DefaultVersion()
}

func apiOf(name string) render.API {
	slash := strings.LastIndexByte(name, '/')
	return render.API{GroupVersion: name[:slash], Kind: name[slash+1:], Namespaced: true}
}
