// Package report finds out what the agent's cluster is: its Kubernetes version
// and the kinds that it serves. It reports the kinds to the hub, and gives the
// heartbeat what there is to say of the agent.
package report

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/utils/clock"

	"github.com/flotilla-sh/flotilla/internal/apply"
	"github.com/flotilla-sh/flotilla/internal/backoff"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

const (
	// refresh is how often the cluster is looked at by itself.
	refresh = 10 * time.Minute
	// settle gathers changes of kinds, which come in numbers.
	settle = 500 * time.Millisecond
)

var (
	// retry is when a report that failed is tried again.
	retry = backoff.Backoff{Min: 10 * time.Second, Max: time.Minute, Jitter: 1}
	// again is when to look again where some kinds could not be read: an API of
	// which the server is gone stays so.
	again = backoff.Backoff{Min: 10 * time.Second, Max: refresh, Jitter: 0.5}
)

// Hub takes the report.
type Hub interface {
	PatchCapabilities(ctx context.Context, patch []byte) error
	// ReportedAPIs returns the kinds of the last report, one a line.
	ReportedAPIs(ctx context.Context) (string, error)
	// Meet sees to it that the agent's Lease has been read.
	Meet(ctx context.Context) error
}

// Kinds lists what the cluster serves.
type Kinds interface {
	List(ctx context.Context) (apply.Listing, error)
}

// Version asks the cluster for its version.
type Version interface {
	ServerVersion() (*version.Info, error)
}

// Options are the parts that a Reporter works with.
type Options struct {
	Hub Hub
	// Tell takes what there is to say of the agent.
	Tell    func(fleet.AgentReport)
	Kinds   Kinds
	Version Version
	Clock   clock.Clock
	// Namespace is the agent's own.
	Namespace string
	// Unknown counts the deployments that the hub does not know.
	Unknown func() int
}

// Reporter reports.
type Reporter struct {
	Options
	wake chan struct{}
	sent facts
	// told are the kinds as the hub was told them last, in this life or an
	// earlier one; empty where nobody has asked yet.
	told    string
	failed  int  // how often in a row nothing could be reported
	partial int  // and how often some kinds could not be read
	unread  bool // some could not be read the last time
	// lost is true where the hub may have lost what it was told.
	lost atomic.Bool
}

// facts are what the hub renders for.
type facts struct {
	version string
	apis    string
}

// New returns a reporter that has reported nothing yet.
func New(o Options) *Reporter {
	return &Reporter{Options: o, wake: make(chan struct{}, 1)}
}

// Wake asks for a report soon, as the kinds of the cluster may have changed.
func (r *Reporter) Wake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Anew asks for a report of everything: the hub may have lost what it was told.
func (r *Reporter) Anew() {
	r.lost.Store(true)
	r.Wake()
}

// Run reports at once, when woken and now and then, until ctx ends.
func (r *Reporter) Run(ctx context.Context) {
	for {
		pause := backoff.Spread(refresh, 0.2, rand.Float64)
		if err := r.once(ctx); err != nil && ctx.Err() == nil {
			logr.FromContextOrDiscard(ctx).Info("could not report the cluster", "error", err.Error())
			r.failed++
			pause = retry.After(r.failed, rand.Float64)
		} else if err == nil {
			r.failed = 0
			pause = min(pause, r.again())
		}
		select {
		case <-ctx.Done():
			return
		case <-r.Clock.After(pause):
		case <-r.wake:
			<-r.Clock.After(settle)
		}
	}
}

// again is when to look again: sooner where some kinds could not be read, and
// later each time.
func (r *Reporter) again() time.Duration {
	if !r.unread {
		r.partial = 0
		return refresh
	}
	r.partial++
	return again.After(r.partial, rand.Float64)
}

// once looks at the cluster and sends what has changed.
func (r *Reporter) once(ctx context.Context) error {
	now, err := r.look(ctx)
	if err != nil {
		return err
	}
	r.Tell(fleet.AgentReport{Namespace: r.Namespace, KubernetesVersion: now.version, UnknownDeployments: r.Unknown()})
	if r.lost.Swap(false) {
		r.sent = facts{}
	}
	if now == r.sent {
		return nil
	}
	// Read first: a Lease that is lost after that makes all be told again.
	if err := r.Hub.Meet(ctx); err != nil {
		return fmt.Errorf("read the Lease of this agent on the hub: %w", err)
	}
	if err := r.capabilities(ctx, now); err != nil {
		return err
	}
	r.sent, r.told = now, now.apis
	return nil
}

func (r *Reporter) look(ctx context.Context) (facts, error) {
	info, err := r.Version.ServerVersion()
	if err != nil {
		return facts{}, fmt.Errorf("read the version of this cluster: %w", err)
	}
	found, err := r.Kinds.List(ctx)
	if err != nil {
		return facts{}, err
	}
	r.unread = len(found.Unread) > 0
	apis, err := r.whole(ctx, found)
	if err != nil {
		return facts{}, err
	}
	return facts{version: info.GitVersion, apis: strings.Join(apis, "\n")}, nil
}

// whole returns the kinds of the cluster with those that were reported before
// of what cannot be read at the moment. The hub would take them for gone, and
// what was rendered for them away.
func (r *Reporter) whole(ctx context.Context, found apply.Listing) ([]string, error) {
	if len(found.Unread) == 0 {
		return found.Kinds, nil
	}
	if r.told == "" {
		told, err := r.Hub.ReportedAPIs(ctx)
		if err != nil {
			return nil, fmt.Errorf("the kinds of %s cannot be read at the moment; ask the hub which it knows: %w", strings.Join(found.Unread, ", "), err)
		}
		r.told = told
	}
	return together(found, r.told), nil
}

// together adds to what was found the lines before of what could not be read.
func together(found apply.Listing, before string) []string {
	all := slices.Clone(found.Kinds)
	for line := range strings.SplitSeq(before, "\n") {
		if slash := strings.LastIndexByte(line, '/'); slash > 0 && slices.Contains(found.Unread, line[:slash]) {
			all = append(all, line)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (r *Reporter) capabilities(ctx context.Context, f facts) error {
	patch, err := json.Marshal(map[string]any{"data": map[string]string{
		fleet.CapabilitiesVersionKey: f.version, fleet.CapabilitiesAPIsKey: f.apis,
	}})
	if err != nil {
		return fmt.Errorf("encode the capabilities: %w", err)
	}
	if err := r.Hub.PatchCapabilities(ctx, patch); err != nil {
		return fmt.Errorf("report the capabilities: %w", err)
	}
	return nil
}
