package deploy

import (
	"github.com/flotilla-sh/flotilla/internal/fault"
)

// finished tells whether what is wanted was applied. A release of it that was
// given up has left something else: what was applied before with other values.
func (j *job) finished() bool {
	return j.record != nil && j.record.Runs() && j.record.Applied == j.wantedID() && !j.givenUp()
}

// givenUp tells whether the release of what is wanted has failed.
func (j *job) givenUp() bool {
	r := j.record
	return r != nil && r.Release != nil && r.Release.ID == j.wantedID() && r.Release.Failed != ""
}

// failsAnew tells whether what is applied cannot be rendered with the values
// that the cluster has by now.
func (j *job) failsAnew() bool {
	return j.stale && j.trouble.id == j.wantedID() && fault.KindOf(j.trouble.err) == fault.Stalled
}

// appliedID is what counts as applied: nothing where the same deployment could
// not be applied with the values that the cluster has by now.
func (j *job) appliedID() string {
	if j.record.Applied == j.wantedID() && (j.givenUp() || j.failsAnew()) {
		return ""
	}
	return j.record.Applied
}

// appliedBefore is what is known to be applied once an apply has begun: nothing
// where the same deployment is applied with other values.
func (j *job) appliedBefore() string {
	if j.record == nil || j.record.Applied == j.wantedID() {
		return ""
	}
	return j.record.Applied
}
