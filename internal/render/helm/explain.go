package helm

import (
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/flotilla-sh/flotilla/internal/fault"
)

// place is a line of a template. Its file begins with the chart's name, as
// Helm writes it, until it is shown.
type place struct {
	file string
	line int
}

func (p place) String() string {
	if p.line == 0 {
		return p.file
	}
	return p.file + ":" + strconv.Itoa(p.line)
}

// What Helm and text/template write. The messages are read only for places and
// for the sentence to show, never to decide what to do.
var (
	// stepText is "template: FILE:LINE:COLUMN: executing "NAME" at <EXPR>: ".
	stepText = regexp.MustCompile(`(?:error calling \w+: )?template: ([^:]+):(\d+)(?::\d+)?: executing "[^"]*" at <((?s:.*?))>: `)
	// atText is "execution error at (FILE:LINE:COLUMN): " and "parse error at …".
	atText = regexp.MustCompile(`(execution|parse) error (?:at|in) \(([^:)]+)(?::(\d+))?(?::\d+)?\): `)
	// nilText is what text/template says of a field of something unset.
	nilText = regexp.MustCompile(`nil pointer evaluating [^.]*\.(\S+)`)
	// valuePath is a path of values in an expression.
	valuePath = regexp.MustCompile(`\.Values\.([A-Za-z0-9_.]+)`)
	// calling is the prefix for each function on the way.
	calling = regexp.MustCompile(`^(?:error calling \w+: )+`)
)

// bundlePath replaces the chart's name at the head of a file name by the
// chart's directory in the bundle.
func bundlePath(name, chartName, dir string) string {
	rest, ok := strings.CutPrefix(name, chartName+"/")
	if !ok {
		return name
	}
	return path.Join(dir, rest)
}

func (r *run) place(p place) place { return place{r.path(p.file), p.line} }

// locate returns the places that an error of the engine names, outermost first.
func locate(err error) []place {
	var places []place
	text := err.Error()
	for _, m := range stepText.FindAllStringSubmatch(text, -1) {
		places = append(places, placeOf(m[1], m[2]))
	}
	if m := atText.FindStringSubmatch(text); m != nil {
		places = append(places, placeOf(m[2], m[3]))
	}
	return places
}

func placeOf(file, line string) place {
	n, _ := strconv.Atoi(line)
	return place{file, n}
}

// explain makes of an error of the engine one for the person who must act:
// where, what, and what to do.
func (r *run) explain(err error) error {
	text := err.Error()
	places := locate(err)
	message, expression := text, ""
	if steps := stepText.FindAllStringSubmatchIndex(text, -1); len(steps) > 0 {
		last := steps[len(steps)-1]
		message, expression = text[last[1]:], text[last[6]:last[7]]
	} else if at := atText.FindStringIndex(text); at != nil {
		message = text[at[1]:]
	}
	message = calling.ReplaceAllString(strings.TrimSpace(message), "")
	explained := fmt.Errorf("%s%s%s", say(message, expression), r.via(places), advice(text, message, expression))
	if len(places) == 0 {
		return fault.Stall(ReasonTemplate, fmt.Errorf("the chart %s: %w", r.loaded.chart.Name(), explained))
	}
	at := r.place(places[len(places)-1])
	return fault.Stall(ReasonTemplate, fault.At(at.file, at.line, explained))
}

// say writes the message with the expression that it is about.
func say(message, expression string) string {
	if m := nilText.FindStringSubmatch(message); m != nil {
		return fmt.Sprintf("%s cannot be read: what %s would be a part of is not set", expression, m[1])
	}
	if expression == "" || strings.HasPrefix(expression, "include ") {
		return message
	}
	return fmt.Sprintf("%s (in %s)", message, expression)
}

// via tells which template the failing one was included from.
func (r *run) via(places []place) string {
	if len(places) < 2 || places[0].file == places[len(places)-1].file {
		return ""
	}
	return fmt.Sprintf(" (included from %s)", r.place(places[0]))
}

// advice says what to do about it.
func advice(whole, message, expression string) string {
	if m := valuePath.FindStringSubmatch(expression + " " + message); m != nil && nilText.MatchString(message) {
		return fmt.Sprintf(": set helm.values.%s", m[1])
	}
	if strings.HasPrefix(whole, "execution error") {
		return ": the chart asks for this itself, set it under helm.values"
	}
	return ": correct the template or the values"
}
