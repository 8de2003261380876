package helmop

import (
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/charts"
	"github.com/flotilla-sh/flotilla/internal/source/chart"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// looks remembers when charts were looked for. A restart forgets it, and then
// the first look is an interval away.
type looks struct {
	mu  sync.Mutex
	ops map[types.NamespacedName]look
}

// look is the last time that the chart of a HelmOp was brought, and that a newer
// one was looked for, with or without success.
type look struct {
	at, tried time.Time
	force     int64
}

// refresh decides whether the chart is looked for anew: always where
// forceSyncGeneration was raised above what the Bundle has, a newer one where
// pollingInterval has passed, and else only where the HelmOp names another.
func (l *looks) refresh(op *fleet.HelmOp, have *fleet.Bundle, now time.Time) charts.Refresh {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := client.ObjectKeyFromObject(op)
	last, known := l.ops[key]
	if !known {
		last = look{at: now, tried: now, force: op.Spec.ForceSyncGeneration}
		if have != nil {
			last.force = have.Spec.ForceSyncGeneration
		}
		if l.ops == nil {
			l.ops = map[types.NamespacedName]look{}
		}
		l.ops[key] = last
	}
	switch every := interval(op); {
	case last.force != op.Spec.ForceSyncGeneration:
		return charts.All
	case every > 0 && now.Sub(last.at) >= every:
		return charts.Newer
	}
	return charts.Keep
}

// note remembers how that went. What failed is looked for again.
func (l *looks) note(op *fleet.HelmOp, refresh charts.Refresh, err error, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := client.ObjectKeyFromObject(op)
	last := l.ops[key]
	if refresh != charts.Keep {
		last.tried = now
	}
	if err == nil {
		last.force = op.Spec.ForceSyncGeneration
	}
	if refresh != charts.Keep && err == nil {
		last.at = now
	}
	l.ops[key] = last
}

func (l *looks) forget(op types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.ops, op)
}

// next is how soon to look again; 0 for never.
func (l *looks) next(op *fleet.HelmOp, now time.Time) time.Duration {
	every := interval(op)
	if every <= 0 || check(op) != nil || exact(op) {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	left := max(l.ops[client.ObjectKeyFromObject(op)].tried.Add(every).Sub(now), time.Second)
	return left + rand.N(left/10+1)
}

func interval(op *fleet.HelmOp) time.Duration {
	if op.Spec.PollingInterval == nil {
		return 0
	}
	return op.Spec.PollingInterval.Duration
}

// exact tells whether there can be no newer version.
func exact(op *fleet.HelmOp) bool {
	return chart.Exact(chart.Want{Repo: op.Spec.Helm.Repo, Chart: op.Spec.Helm.Chart, Version: op.Spec.Helm.Version})
}
