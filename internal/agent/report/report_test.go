package report

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/version"
	"k8s.io/utils/clock"

	"github.com/flotilla-sh/flotilla/internal/apply"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// hub has what was reported last.
type hub struct {
	apis   string
	reads  int
	writes int
	err    error
}

func (h *hub) Meet(context.Context) error { return nil }

func (h *hub) PatchCapabilities(_ context.Context, patch []byte) error {
	var p struct{ Data map[string]string }
	if err := json.Unmarshal(patch, &p); err != nil {
		return err
	}
	h.writes++
	h.apis = p.Data[fleet.CapabilitiesAPIsKey]
	return nil
}

func (h *hub) ReportedAPIs(context.Context) (string, error) {
	h.reads++
	return h.apis, h.err
}

// cluster serves kinds.
type cluster apply.Listing

func (c *cluster) List(context.Context) (apply.Listing, error) { return apply.Listing(*c), nil }

func (*cluster) ServerVersion() (*version.Info, error) {
	return &version.Info{GitVersion: "v1.36.3"}, nil
}

const (
	pods   = "v1/Pod N"
	routes = "route.openshift.io/v1/Route N"
	scc    = "security.openshift.io/v1/SecurityContextConstraints C"
)

func all(lines ...string) string { return strings.Join(lines, "\n") }

// TestWhatCannotBeReadIsNotGone: an agent that starts while an aggregated API is
// away does not tell the hub that its cluster has lost it.
func TestWhatCannotBeReadIsNotGone(t *testing.T) {
	away := []string{"route.openshift.io/v1"}
	for name, tt := range map[string]struct {
		reported string
		finds    []cluster
		want     string
		reads    int
	}{
		"all can be read":          {all(routes, pods), []cluster{{Kinds: []string{pods}}}, pods, 0},
		"one is away":              {all(routes, pods), []cluster{{Kinds: []string{pods}, Unread: away}}, all(routes, pods), 1},
		"and stays so":             {all(routes, pods), []cluster{{Kinds: []string{pods}, Unread: away}, {Kinds: []string{pods}, Unread: away}}, all(routes, pods), 1},
		"another is gone":          {all(routes, scc, pods), []cluster{{Kinds: []string{pods}, Unread: away}}, all(routes, pods), 1},
		"it comes back":            {all(routes, pods), []cluster{{Kinds: []string{pods}, Unread: away}, {Kinds: []string{routes, pods}}}, all(routes, pods), 1},
		"it is taken away":         {all(routes, pods), []cluster{{Kinds: []string{pods}, Unread: away}, {Kinds: []string{pods}}}, pods, 1},
		"it goes later":            {all(routes, pods), []cluster{{Kinds: []string{routes, pods}}, {Kinds: []string{routes, pods}, Unread: away}}, all(routes, pods), 0},
		"nothing was reported yet": {"", []cluster{{Kinds: []string{pods}, Unread: away}}, pods, 1},
	} {
		t.Run(name, func(t *testing.T) {
			h, c := &hub{apis: tt.reported}, &cluster{}
			r := reporter(h, c)
			for _, finds := range tt.finds {
				*c = finds
				if err := r.once(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if h.apis != tt.want || h.reads != tt.reads {
				t.Errorf("after %d reads the hub has %q, want %q after %d", h.reads, h.apis, tt.want, tt.reads)
			}
		})
	}
}

// TestNothingIsReportedInDoubt: where it is not known what was reported, nothing
// is.
func TestNothingIsReportedInDoubt(t *testing.T) {
	h := &hub{apis: routes, err: errors.New("away")}
	if err := reporter(h, &cluster{Kinds: []string{pods}, Unread: []string{"route.openshift.io/v1"}}).once(t.Context()); err == nil || h.writes > 0 {
		t.Errorf("%v, and %d reports", err, h.writes)
	}
}

// TestALostReportIsToldWhole: a hub that has lost its report hears of what cannot
// be read just now as well.
func TestALostReportIsToldWhole(t *testing.T) {
	h, c := &hub{apis: all(routes, pods)}, &cluster{Kinds: []string{pods}, Unread: []string{"route.openshift.io/v1"}}
	r := reporter(h, c)
	for range 2 {
		if err := r.once(t.Context()); err != nil || h.apis != all(routes, pods) {
			t.Fatalf("%v: the hub has %q", err, h.apis)
		}
		h.apis = ""
		r.Anew()
	}
}

func reporter(h *hub, c *cluster) *Reporter {
	return New(Options{
		Hub: h, Tell: func(fleet.AgentReport) {}, Kinds: c, Version: c, Clock: clock.RealClock{}, Unknown: func() int { return 0 },
	})
}
