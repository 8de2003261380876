package observe

import "github.com/flotilla-sh/flotilla/internal/apply"

// Dress says on which namespace a bundle has set something; "" is none.
func (t *Tracker) Dress(owner apply.Owner, namespace string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.group(owner).dressed = namespace
}

// Dresses tells whether any bundle has set something on its namespace.
func (t *Tracker) Dresses() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, g := range t.groups {
		if g.dressed != "" {
			return true
		}
	}
	return false
}

// Touch takes in that a namespace was written to, or may have been.
func (t *Tracker) Touch(namespace string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for label, g := range t.groups {
		if g.dressed == namespace {
			g.touched = true
			t.wake(label, LookDrift)
		}
	}
}

// Touched tells whether the namespace of a bundle was written to since it was
// last asked; with all, whether there is one.
func (t *Tracker) Touched(label string, all bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.groups[label]
	if g == nil || g.busy || g.dressed == "" || !g.touched && !all {
		return false
	}
	g.touched = false
	return true
}

// Retouch asks for another look at a namespace that could not be read.
func (t *Tracker) Retouch(label string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if g := t.groups[label]; g != nil {
		g.touched = g.dressed != ""
	}
}
