package hubtest_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/hub/tenancy"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

func TestLimitsHoldANamespace(t *testing.T) {
	elsewhere := newWorld(t)
	for name, tt := range map[string]struct {
		limit func(*world) client.Object
		says  string
	}{
		"no limits": {func(*world) client.Object { return nil }, ""},
		"a Policy":  {func(w *world) client.Object { return &fleet.Policy{ObjectMeta: w.meta("strict")} }, "held: Policy "},
		"a GitRepoRestriction": {func(w *world) client.Object {
			return &fleet.GitRepoRestriction{ObjectMeta: w.meta("strict")}
		}, "held: GitRepoRestriction "},
		"limits of another namespace": {func(*world) client.Object {
			return &fleet.Policy{ObjectMeta: metav1.ObjectMeta{Namespace: elsewhere.namespace, Name: "strict"}}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if limit := tt.limit(w); limit != nil {
				w.create(limit)
			}
			err := tenancy.Check(w.ctx, w.client, w.namespace)
			if tt.says == "" {
				w.must(err)
				return
			}
			want := tt.says + w.namespace + "/strict limits"
			if err == nil || !strings.HasPrefix(err.Error(), want) || fault.KindOf(err) != fault.Waiting || fault.ReasonOf(err, "") != fleet.ReasonPolicyViolation {
				t.Errorf("got %v, want a waiting error: %s", err, want)
			}
		})
	}
}
