package status

import (
	"fmt"
	"strings"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// Noun is the kind of thing that a message names.
type Noun string

// What roll-ups name: a Bundle names clusters, a Cluster names bundles.
const (
	NounCluster Noun = "Cluster"
	NounBundle  Noun = "Bundle"
)

// line is the part of a message that speaks of one state:
// State(count) [Noun name: message]; object; object.
func line(state fleet.BundleState, count int, noun Noun, r fleet.NonReadyResource) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s(%d) [%s %s", state, count, noun, r.Name)
	if r.Message != "" {
		b.WriteString(": " + r.Message)
	}
	b.WriteString("]")
	for _, m := range r.ModifiedStatus[:min(maxListed, len(r.ModifiedStatus))] {
		b.WriteString("; " + ModifiedText(m))
	}
	for _, n := range r.NonReadyStatus[:min(maxListed, len(r.NonReadyStatus))] {
		b.WriteString("; " + NonReadyText(n))
	}
	return b.String()
}

// ModifiedText says what is not as applied, and by whose hand if that is known.
func ModifiedText(m fleet.ModifiedStatus) string {
	text := objectText(m.APIVersion, m.Kind, m.Namespace, m.Name)
	switch {
	case m.Create && m.Exist:
		return text + " is not owned by us"
	case m.Create:
		return text + " missing"
	case m.Delete:
		return text + " extra"
	}
	text += " modified"
	if m.Patch != "" {
		text += " " + m.Patch
	}
	return text + byText(m.By)
}

func byText(owners []fleet.FieldOwner) string {
	var names []string
	for _, o := range owners {
		names = append(names, o.Manager)
	}
	if len(names) == 0 {
		return ""
	}
	return " by " + strings.Join(names, ", ")
}

// NonReadyText says what is not healthy.
func NonReadyText(n fleet.NonReadyStatus) string {
	var flags []string
	if n.Summary.Transitioning {
		flags = append(flags, "progressing")
	}
	if n.Summary.Error {
		flags = append(flags, "error")
	}
	text := objectText(n.APIVersion, n.Kind, n.Namespace, n.Name)
	if len(flags) > 0 {
		text += " [" + strings.Join(flags, ",") + "]"
	}
	if len(n.Summary.Message) > 0 {
		text += " " + cut(strings.Join(n.Summary.Message, ", "))
	}
	return text
}

// objectText names an object as kind.group namespace/name; the core group goes
// by its version.
func objectText(apiVersion, kind, namespace, name string) string {
	group, _, _ := strings.Cut(apiVersion, "/")
	if namespace != "" {
		name = namespace + "/" + name
	}
	return strings.ToLower(kind) + "." + group + " " + name
}
