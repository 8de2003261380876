package state

import (
	"slices"
	"strconv"
	"time"

	"github.com/flotilla-sh/flotilla/internal/apply"
	"github.com/flotilla-sh/flotilla/internal/content"
	"github.com/flotilla-sh/flotilla/internal/digest"
	"github.com/flotilla-sh/flotilla/internal/hook"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// Event is why a release is made.
type Event string

// The events of a deployment's life.
const (
	Install Event = "install"
	Upgrade Event = "upgrade"
	Delete  Event = "delete"
)

// Phase is how far a release has come.
type Phase string

// The phases of a release.
const (
	// Definitions applies what hooks may need: kinds and namespaces.
	Definitions Phase = "definitions"
	// Copies applies what was copied from the hub, which hooks may need.
	Copies Phase = "copies"
	// Before and After run hooks.
	Before Phase = "before"
	After  Phase = "after"
	// Objects applies or removes the objects.
	Objects Phase = "objects"
	// Undo puts the last good content back.
	Undo Phase = "undo"
	// Over is the end.
	Over Phase = "over"
)

// phases are the phases of each event, in their order. Before an upgrade the
// hooks still see the kinds of the old content.
var phases = map[Event][]Phase{
	Install: {Definitions, Copies, Before, Objects, After, Over},
	Upgrade: {Copies, Before, Objects, After, Over},
	Delete:  {Before, Objects, After, Over},
}

// hooks are the hooks of each phase.
var hooks = map[Event]map[Phase]hook.Event{
	Install: {Before: hook.PreInstall, After: hook.PostInstall},
	Upgrade: {Before: hook.PreUpgrade, After: hook.PostUpgrade},
	Delete:  {Before: hook.PreDelete, After: hook.PostDelete},
}

// Release is one way from one content to the next: what is done and stored
// before the next step is taken, so that whatever ends the program, nothing is
// done twice and nothing is left out.
type Release struct {
	// ID is the deployment ID that is being released.
	ID string `json:"id"`
	// Content is the root of what is released: the same deployment may be
	// rendered with other values on its cluster.
	Content string `json:"content"`
	// Input is what it was rendered from, where this cluster has rendered it.
	Input string `json:"input,omitempty"`
	// Run tells this release from all others, of the same ID too.
	Run string `json:"run"`
	// Event is why it is made.
	Event Event `json:"event"`
	// Phase is what is being done.
	Phase Phase `json:"phase"`
	// Spent is for how long the present hook or wave was waited for, as far as
	// the cluster could be looked at.
	Spent time.Duration `json:"spent,omitempty"`
	// Done are the hooks of the phase that are finished.
	Done []apply.Ref `json:"done,omitempty"`
	// Reapply is true where unchanged objects are applied too.
	Reapply bool `json:"reapply,omitempty"`
	// Rehearsed is true once all of it was tried.
	Rehearsed bool `json:"rehearsed,omitempty"`
	// Wave counts the waves of objects that are applied and ready.
	Wave int `json:"wave,omitempty"`
	// Broken is the hook that has failed, until the release is given up.
	Broken *Broken `json:"broken,omitempty"`
	// Failed is why it was given up.
	Failed string `json:"failed,omitempty"`
}

// Broken is a hook that has failed.
type Broken struct {
	Hook apply.Ref `json:"hook"`
	// Why says how.
	Why string `json:"why"`
}

// Good is a content whose release has succeeded.
type Good struct {
	// ID is its deployment ID.
	ID string `json:"id"`
	// Refs are its payloads, Options those that it was applied with, and
	// Rendered says what it was rendered from.
	Refs     []content.Ref                 `json:"refs"`
	Options  fleet.BundleDeploymentOptions `json:"options,omitzero"`
	Rendered *Rendered                     `json:"rendered,omitempty"`
}

// NewRelease returns a release that begins now.
func NewRelease(id string, event Event, now time.Time) *Release {
	// A clock may stand still, or go back.
	run := strconv.FormatInt(now.UnixNano(), 36) + "-" + digest.OfBytes([]byte(id))[:8]
	return &Release{ID: id, Run: run, Event: event, Phase: phases[event][0]}
}

// Next returns the release in its next phase.
func (r Release) Next() *Release {
	all := phases[r.Event]
	r.Phase = all[min(slices.Index(all, r.Phase)+1, len(all)-1)]
	r.Wave, r.Spent, r.Done = 0, 0, nil
	return &r
}

// Hooks returns the event whose hooks run in a phase; empty where none do.
func (r *Release) Hooks(p Phase) hook.Event { return hooks[r.Event][p] }

// HookRun is the run of hooks that the phase stands for.
func (r *Release) HookRun() apply.HookRun {
	return apply.HookRun{Event: r.Hooks(r.Phase), ID: r.Run, Done: r.Done}
}
