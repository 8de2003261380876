package soak_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/flotilla-sh/flotilla/internal/digest"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// The annotations by which whoever watches knows what an object belongs to.
const (
	// contentMark names the content of a bundle that an object came with.
	contentMark = "soak.test/content"
	// failMark lets a Job fail.
	failMark = "soak.test/fails"
)

// id names the present content of a bundle. Versions only grow, so that no two
// contents have the same.
func (b *bundle) id() string {
	return digest.Of([]byte(fmt.Sprintf("%v %v %v", b.objects, b.bad, b.failing)))[:12]
}

// app is the name of a bundle's Deployment.
func (b *bundle) app() string { return b.name + "-app" }

// hookJobs are the Jobs of a bundle with hooks: name, events, and when they are
// deleted.
var hookJobs = [][3]string{
	{"check", "pre-install,pre-upgrade", "before-hook-creation"},
	{"migrate", "pre-install,pre-upgrade", "before-hook-creation,hook-succeeded"},
	{"tell", "post-install,post-upgrade", "hook-succeeded"},
	{"drain", "pre-delete", "before-hook-creation"},
	{"clean", "post-delete", "hook-succeeded,hook-failed"},
}

// text is the manifest of a bundle.
func (m *model) text(b *bundle) string {
	var text strings.Builder
	put := func(head, kind, name, annotations, body string) {
		fmt.Fprintf(&text, "---\napiVersion: %s\nkind: %s\nmetadata: {name: %s, namespace: %s, annotations: {%s}}\n%s\n", head, kind, name, m.names.shop, annotations, body)
	}
	annotations := ""
	data := "data: {version: \"%d\"}"
	switch {
	case b.chart:
		annotations, data = fmt.Sprintf("%s: %q", contentMark, b.id()), "data: {version: \"%d\", random: \"{{ randAlphaNum 12 }}\"}"
	}
	if b.waves {
		annotations = strings.TrimPrefix(annotations+fmt.Sprintf(", %s: \"1\"", fleet.WaveAnnotation), ", ")
	}
	for _, name := range slices.Sorted(maps.Keys(b.objects)) {
		put("v1", "ConfigMap", name, annotations, fmt.Sprintf(data, b.objects[name]))
	}
	if b.waves {
		put("apps/v1", "Deployment", b.app(), fmt.Sprintf("%s: %q", contentMark, b.id()), fmt.Sprintf(
			"spec: {replicas: 1, selector: {matchLabels: {app: %[1]s}}, template: {metadata: {labels: {app: %[1]s}, annotations: {%[2]s: %[3]q}}, spec: {containers: [{name: app, image: \"app:1\"}]}}}",
			b.app(), contentMark, b.id()))
	}
	if b.hooks {
		for _, h := range hookJobs {
			fails := ""
			if b.failing && h[0] == "check" {
				fails = fmt.Sprintf(", %s: \"true\"", failMark)
			}
			put("batch/v1", "Job", b.name+"-"+h[0], fmt.Sprintf("%s: %q, helm.sh/hook: %q, helm.sh/hook-delete-policy: %q%s", contentMark, b.id(), h[1], h[2], fails),
				"spec: {template: {spec: {restartPolicy: Never, containers: [{name: app, image: \"app:1\"}]}}}")
		}
	}
	if b.bad {
		put("example.org/v1", "Widget", b.name, "", "")
	}
	return text.String()
}
