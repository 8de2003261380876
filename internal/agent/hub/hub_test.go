package hub

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestLostLease(t *testing.T) {
	lease := func(uid, version string) metav1.ObjectMeta {
		return metav1.ObjectMeta{UID: types.UID(uid), ResourceVersion: version}
	}
	for name, tt := range map[string]struct {
		before, now metav1.ObjectMeta
		want        bool
	}{
		"the first beat":     {metav1.ObjectMeta{}, lease("a", "10"), false},
		"the next beat":      {lease("a", "9"), lease("a", "10"), false},
		"nothing written":    {lease("a", "10"), lease("a", "10"), false},
		"made anew":          {lease("a", "10"), lease("b", "11"), true},
		"a restored backup":  {lease("a", "10"), lease("a", "8"), true},
		"no version to read": {lease("a", "x"), lease("a", "8"), false},
	} {
		if got := lost(tt.before, tt.now); got != tt.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
