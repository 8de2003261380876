package render

import (
	"errors"
	"slices"
	"strings"

	"github.com/flotilla-sh/flotilla/internal/fault"
)

// discreet returns an error of the same kind and reason that says where a render
// has failed, and not in which words: parsers quote the text, a template's fail
// and a schema the values, and these may be a Secret's.
func discreet(err error) error {
	return fault.Like(err, errors.New(discreetText(fault.Notes(err), fault.ReasonOf(err, ""))))
}

func discreetText(notes []fault.Note, reason string) string {
	var places []string
	for _, n := range notes {
		if n.File == "" {
			continue
		}
		n.Message = "" // "file:line: "
		if place := strings.TrimSuffix(n.String(), ": "); !slices.Contains(places, place) {
			places = append(places, place)
		}
	}
	text := "it cannot be rendered with the values of this cluster"
	if reason != "" {
		text += " (" + reason + ")"
	}
	if len(places) > 0 {
		text = strings.Join(places, ", ") + ": " + text
	}
	return text + "; a Secret went into it, and the words of the error may repeat its values, so they are left out: render it with values of your own to see them"
}
