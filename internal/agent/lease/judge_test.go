package lease

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestJudge(t *testing.T) {
	now := time.Unix(10_000, 0)
	for name, test := range map[string]struct {
		sight sight
		ours  bool
		want  verdict
	}{
		"free":                           {sight: sight{at: now, lifetime: time.Minute}, want: held},
		"ours":                           {sight: sight{holder: "me", at: now, lifetime: time.Minute}, ours: true, want: held},
		"another's":                      {sight: sight{holder: "other", at: now, lifetime: time.Minute}, want: taken},
		"another's, silent for a while":  {sight: sight{holder: "other", at: now.Add(-time.Minute), lifetime: time.Minute}, want: taken},
		"another's, silent for too long": {sight: sight{holder: "other", at: now.Add(-time.Minute - 1), lifetime: time.Minute}, want: held},
	} {
		t.Run(name, func(t *testing.T) {
			if got := judge(test.sight, test.ours, now); got != test.want {
				t.Errorf("got %d", got)
			}
		})
	}
}

func TestSightIsByTheOwnClock(t *testing.T) {
	now := time.Unix(10_000, 0)
	lease := func(holder string, renewed time.Time) *coordinationv1.Lease {
		at := metav1.NewMicroTime(renewed)
		return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &at, LeaseDurationSeconds: ptr.To[int32](60)}}
	}
	// The holder's clock is an hour behind, which says nothing.
	s := sight{}.next(lease("other", now.Add(-time.Hour)), now)
	if judge(s, false, now) != taken {
		t.Error("a first look proves no silence")
	}
	s = s.next(lease("other", now.Add(-time.Hour)), now.Add(50*time.Second))
	if !s.at.Equal(now) {
		t.Errorf("seen at %s", s.at)
	}
	s = s.next(lease("other", now.Add(-time.Hour+time.Minute)), now.Add(55*time.Second))
	if !s.at.Equal(now.Add(55 * time.Second)) {
		t.Errorf("a renewal was not seen: %s", s.at)
	}
}
