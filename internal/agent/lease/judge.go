package lease

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/ptr"
)

// verdict is who has the Lease.
type verdict int

const (
	// taken: another agent has it.
	taken verdict = iota
	// held: this agent has it, or may take it.
	held
)

// sight is what was last seen of a Lease. Its age is measured from when it was
// seen to change, by the clock of who looks: clocks of holders may be wrong.
type sight struct {
	holder   string
	uid      types.UID
	version  string
	renewed  time.Time
	lifetime time.Duration
	at       time.Time
}

// next returns the sight after another look.
func (s sight) next(lease *coordinationv1.Lease, now time.Time) sight {
	seen := sight{
		holder:   ptr.Deref(lease.Spec.HolderIdentity, ""),
		uid:      lease.UID,
		version:  lease.ResourceVersion,
		lifetime: time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, int32(expiresAfter/time.Second))) * time.Second,
		at:       now,
	}
	if lease.Spec.RenewTime != nil {
		seen.renewed = lease.Spec.RenewTime.Time
	}
	if seen.holder == s.holder && seen.renewed.Equal(s.renewed) && !s.at.IsZero() {
		seen.at = s.at
	}
	return seen
}

// follows tells whether what was seen of a Lease comes after the state that was
// written last. Where it does not, or the Lease is another one or gone, the
// cluster has lost writes, and those to other objects with them.
func follows(s sight, last *coordinationv1.Lease) bool {
	order, err := resourceversion.CompareResourceVersion(s.version, last.ResourceVersion)
	return s.uid == last.UID && (err != nil || order >= 0)
}

// judge tells whether an agent may take a Lease: it is free, or its own, or
// was not renewed for as long as it says.
func judge(s sight, ours bool, now time.Time) verdict {
	if s.holder == "" || ours || now.Sub(s.at) > s.lifetime {
		return held
	}
	return taken
}
