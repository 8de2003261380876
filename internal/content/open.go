package content

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/flotilla-sh/flotilla/internal/source"
)

// openKinds are kinds whose manifests anyone may see who may see the objects
// that come of them. Not so a List, which can hold anything, what configures a
// generator, and what no API server knows, such as the Config of kubectl.
const openKinds = `
	APIService CSIDriver ClusterRole ClusterRoleBinding ConfigMap CronJob CustomResourceDefinition DaemonSet
	Deployment EndpointSlice Endpoints Gateway HTTPRoute HorizontalPodAutoscaler Ingress IngressClass Job Lease
	LimitRange MutatingWebhookConfiguration Namespace NetworkPolicy PersistentVolume PersistentVolumeClaim Pod
	PodDisruptionBudget PodMonitor PriorityClass PrometheusRule ReplicaSet ResourceQuota Role RoleBinding
	RuntimeClass Service ServiceAccount ServiceMonitor StatefulSet StorageClass ValidatingAdmissionPolicy
	ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration`

var (
	isOpenKind = kindSet()
	// documentEnd is where a document of YAML ends or another begins.
	documentEnd = regexp.MustCompile(`(?m)^(---|\.\.\.)`)
	// documentKind and documentVersion are keys of the document itself: nothing
	// stands before them.
	documentKind    = regexp.MustCompile(`(?m)^["']?kind["']?[ \t]*:[ \t]*["']?([A-Za-z0-9]+)["']?[ \t\r]*(?:#.*)?$`)
	documentVersion = regexp.MustCompile(`(?m)^["']?apiVersion["']?[ \t]*:[ \t]*["']?([A-Za-z0-9./-]+|\{\{.*\}\})["']?[ \t\r]*(?:#.*)?$`)
	// anyKind finds what looks like a key kind anywhere.
	anyKind = regexp.MustCompile(`(?m)^["']?kind["']?[ \t]*:`)
	// secretKind finds what looks like a Secret, however it is written: in a
	// branch of a template, in a list, in braces.
	secretKind = regexp.MustCompile(`kind["']?\s*:\s*(["']?Secret|\S*\{\{|[>|&*!])`)
	// nothingIn matches documents of comments and of directives of templates.
	nothingIn = regexp.MustCompile(`^(\s|#.*(\n|$)|\{\{[^}]*\}\})*$`)
)

func kindSet() map[string]bool {
	set := map[string]bool{}
	for _, kind := range strings.Fields(openKinds) {
		set[kind] = true
	}
	return set
}

// mayHoldSecret tells whether a file may hold a secret value. That is taken for
// granted, also of parts of templates, values, kustomizations, and files that a
// template or generator may read. Not so of a file, or template, whose every
// document is an object of a kind that is open: it shows no more than the
// objects that come of it. Files are looked at as text: to parse each, which is
// not done here for anything else, would cost more than it can find, and many
// are templates.
func mayHoldSecret(f source.File) bool {
	name := path.Base(f.Path)
	ext := path.Ext(name)
	switch stem := strings.TrimSuffix(name, ext); {
	case name == "Chart.yaml":
		return false
	case ext != ".yaml" && ext != ".yml":
		return true
	case stem == "values" || strings.EqualFold(stem, "kustomization"):
		return true
	}
	text := string(f.Data)
	if secretKind.MatchString(text) || !anyKind.MatchString(text) {
		return true
	}
	return slices.ContainsFunc(documentEnd.Split(text, -1), mayBeSecret)
}

func mayBeSecret(document string) bool {
	if nothingIn.MatchString(document) {
		return false
	}
	kinds := anyKind.FindAllString(document, -1)
	kind, version := documentKind.FindAllStringSubmatch(document, -1), documentVersion.FindAllStringSubmatch(document, -1)
	if len(kind) == 0 || len(kind) != len(kinds) || len(version) == 0 {
		return true
	}
	return slices.ContainsFunc(kind, func(found []string) bool { return !isOpenKind[found[1]] }) ||
		slices.ContainsFunc(version, func(found []string) bool { return found[1] == "builtin" || strings.Contains(found[1], "kustomize") })
}
