// Package hook reads the annotations by which an object is a Helm hook: an
// object that is not part of what a bundle runs, but is made at certain moments
// of its life. It is pure.
package hook

import (
	"slices"
	"strconv"
	"strings"
)

// The annotations of hooks.
const (
	// Annotation lists the events of a hook.
	Annotation = "helm.sh/hook"
	// WeightAnnotation orders the hooks of one event.
	WeightAnnotation = "helm.sh/hook-weight"
	// DeleteAnnotation says when a hook is deleted.
	DeleteAnnotation = "helm.sh/hook-delete-policy"
)

// Event is a moment at which hooks run.
type Event string

// The events whose hooks run.
const (
	PreInstall  Event = "pre-install"
	PostInstall Event = "post-install"
	PreUpgrade  Event = "pre-upgrade"
	PostUpgrade Event = "post-upgrade"
	PreDelete   Event = "pre-delete"
	PostDelete  Event = "post-delete"
)

// crdInstall is how Helm 2 charts marked definitions; they are objects like any.
const crdInstall = "crd-install"

// Policy is a moment at which a hook is deleted.
type Policy string

// The delete policies.
const (
	// BeforeCreation deletes what an earlier run left, before the next one.
	BeforeCreation Policy = "before-hook-creation"
	// Succeeded and Failed delete a hook after its event.
	Succeeded Policy = "hook-succeeded"
	Failed    Policy = "hook-failed"
)

// Hook is what an object's annotations say of it.
type Hook struct {
	// Events are those at which it runs, sorted. A hook without any never
	// does: tests run when a person asks for them, and nothing is rolled back
	// in Helm's way.
	Events []Event
	// Unknown are words in the place of an event that are none, sorted. As with
	// Helm, such a hook never runs.
	Unknown []string
	// Weight orders hooks of one event; lower ones run first.
	Weight int
	// Policies say when it is deleted.
	Policies []Policy
}

// Of reads what annotation says of an object, and tells whether it is a hook at
// all.
func Of(annotation func(name string) string) (Hook, bool) {
	text := annotation(Annotation)
	if text == "" {
		return Hook{}, false
	}
	h := Hook{Policies: policies(annotation(DeleteAnnotation))}
	h.Weight, _ = strconv.Atoi(strings.TrimSpace(annotation(WeightAnnotation)))
	for _, word := range words(text) {
		switch event := Event(word); event {
		case crdInstall:
			return Hook{}, false
		case PreInstall, PostInstall, PreUpgrade, PostUpgrade, PreDelete, PostDelete:
			h.Events = append(h.Events, event)
		case "test", "test-success", "test-failure", "pre-rollback", "post-rollback":
		default:
			h.Unknown = append(h.Unknown, word)
		}
	}
	if len(h.Unknown) > 0 {
		h.Events = nil
	}
	return h, true
}

// Runs tells whether the hook runs at an event.
func (h *Hook) Runs(e Event) bool { return slices.Contains(h.Events, e) }

// DeletedOn tells whether the hook is to be deleted at a moment.
func (h *Hook) DeletedOn(p Policy) bool { return slices.Contains(h.Policies, p) }

func policies(text string) []Policy {
	var out []Policy
	for _, word := range words(text) {
		out = append(out, Policy(word))
	}
	if len(out) == 0 {
		return []Policy{BeforeCreation}
	}
	return out
}

// words returns the words of a list, sorted and without repetition.
func words(text string) []string {
	var out []string
	for word := range strings.SplitSeq(text, ",") {
		if word = strings.ToLower(strings.TrimSpace(word)); word != "" {
			out = append(out, word)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
