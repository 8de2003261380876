package helm

import (
	"slices"
	"strings"

	"github.com/flotilla-sh/flotilla/internal/render/manifest"
)

// hookAnnotation marks what is no object of the manifest.
const hookAnnotation = "helm.sh/hook"

// HookEvents returns the events at which an object is a hook, sorted. Tests
// are left out: they run only when a person asks for them.
func HookEvents(doc *manifest.Doc) (events []string, isHook bool) {
	annotation := doc.Annotation(hookAnnotation)
	for event := range strings.SplitSeq(annotation, ",") {
		event = strings.TrimSpace(event)
		if event != "" && event != "test" && event != "test-success" && event != "test-failure" {
			events = append(events, event)
		}
	}
	slices.Sort(events)
	return events, annotation != ""
}

// effect returns what of a rendered text reaches a cluster: all but notes,
// white space and tests.
func effect(file, text string) string {
	if strings.HasSuffix(file, notes) || strings.TrimSpace(text) == "" {
		return ""
	}
	parsed, err := manifest.Parse([]byte(text))
	if err != nil {
		return text
	}
	var all strings.Builder
	for i := range parsed.Docs {
		if events, isHook := HookEvents(&parsed.Docs[i]); !isHook || len(events) > 0 {
			all.Write(parsed.Docs[i].JSON)
			all.WriteByte('\n')
		}
	}
	return all.String()
}
