package helm

import (
	"strings"

	"github.com/flotilla-sh/flotilla/internal/hook"
)

// effect returns what of a rendered text reaches a cluster: all but notes,
// white space, and hooks that never run.
func (r *Renderer) effect(file, text string) string {
	if strings.HasSuffix(file, notes) || strings.TrimSpace(text) == "" {
		return ""
	}
	parsed, err := r.texts.LookAhead([]byte(text))
	if err != nil || len(parsed.Foreign) > 0 {
		return text
	}
	var all strings.Builder
	for i := range parsed.Docs {
		if h, isHook := hook.Of(parsed.Docs[i].Annotation); !isHook || len(h.Events) > 0 {
			all.Write(parsed.Docs[i].JSON)
			all.WriteByte('\n')
		}
	}
	return all.String()
}
