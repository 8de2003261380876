package observe

import (
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/flotilla-sh/flotilla/internal/apply"
)

// Look is why an object is to be read.
type Look int

const (
	// LookAway: it is as it was applied, and nothing has happened to it.
	LookAway Look = iota
	// LookHealth: something was written to it, and its state may have changed.
	LookHealth
	// LookDrift: it may not be as it was applied.
	LookDrift
)

// tracked is one object that is watched.
type tracked struct {
	entry apply.Entry
	// accepted is the state that was last found to be without drift.
	accepted Seen
	look     Look
	// missing is true where a watch said that the object is gone.
	missing bool
	// scaledBy is whom it was last scaled by.
	scaledBy string
	// quiet is how long the next look at mere writes of others is put off.
	quiet     time.Duration
	notBefore time.Time
}

// touched tells whether what is ours may be other than it was accepted, rather than
// what others have written beside it.
func (t *tracked) touched(seen Seen) bool {
	return seen.UID != t.accepted.UID || seen.Fields != t.accepted.Fields || seen.Generation != t.accepted.Generation
}

// lost notes that a watch said that the object is gone.
func (t *tracked) lost() {
	t.look, t.missing, t.notBefore = LookDrift, true, time.Time{}
}

// judge names what a sighting of an object calls for.
func judge(t *tracked, seen Seen) Look {
	switch {
	case seen.UID == t.entry.UID && Older(seen.ResourceVersion, t.entry.ResourceVersion):
		return LookAway
	case t.touched(seen):
		return LookDrift
	case t.accepted.Writes != "" && seen.Writes != t.accepted.Writes:
		return LookDrift
	case t.entry.Health && seen.ResourceVersion != t.accepted.ResourceVersion:
		return LookHealth
	}
	return LookAway
}

// Older tells whether resource version a is older than b. Those that cannot be
// compared, such as none, are not.
func Older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}
