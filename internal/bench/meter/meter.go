// Package meter measures what happens to a cluster of the lab: requests by
// program, verb and resource from the API server's audit log, checked against
// its metrics; what etcd writes; and the CPU and memory of each process.
package meter

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"

	"github.com/flotilla-sh/flotilla/internal/lab"
)

// Names of the processes whose CPU is told apart.
const (
	Hub       = "hub"
	APIServer = "kube-apiserver"
	Etcd      = "etcd"
	Manager   = "kube-controller-manager"
	Simulator = "simulator"
	Agent     = "agent"
)

// AuditLog is the name of the audit log in a cluster's directory.
const AuditLog = "audit.log"

// ServerArgs are what an API server of the lab needs to be measured; policy is
// a file with Policy in it.
func ServerArgs(policy string) []string {
	return []string{
		"--audit-policy-file=" + policy,
		"--audit-log-path=" + AuditLog,
		// Blocking, so that what was answered is in the file; never rotated.
		"--audit-log-mode=blocking",
		"--audit-log-maxsize=1000000",
	}
}

// Meter measures one cluster.
type Meter struct {
	server rest.Interface
	etcd   etcdMetrics
	audit  auditLog
	// Roots are the processes that are measured, by name.
	Roots map[string]int
}

// New returns a meter for a cluster, whose API server answers server.
func New(cluster lab.ClusterStatus, server rest.Interface, roots map[string]int) *Meter {
	return &Meter{
		server: server, etcd: newEtcdMetrics(cluster), Roots: roots,
		audit: auditLog{path: filepath.Join(cluster.Dir, AuditLog)},
	}
}

// Mark is a moment from which something is measured.
type Mark struct {
	at     time.Time
	offset int64
	served served
	etcd   EtcdUse
	cpu    map[string]time.Duration
}

// Begin marks the moment before something is done. What the meter itself costs
// the API server falls before it.
func (m *Meter) Begin(ctx context.Context) (Mark, error) {
	var mark Mark
	var err error
	if mark.served, err = readServed(ctx, m.server); err != nil {
		return mark, err
	}
	if mark.etcd, err = m.etcd.read(ctx); err != nil {
		return mark, err
	}
	if mark.offset, err = m.audit.size(); err != nil {
		return mark, err
	}
	mark.cpu, err = cpu(m.Roots)
	mark.at = time.Now()
	return mark, err
}

// Use is what something has cost.
type Use struct {
	// Took is the time between Begin and End.
	Took time.Duration
	// CPU is by process.
	CPU map[string]time.Duration
	// Requests are counts from the audit log.
	Requests Counts
	// Spans are when these were made.
	Spans map[Request]Span
	// Etcd is what etcd has written.
	Etcd EtcdUse
	// Disagree is by how many requests the audit log and the metrics of the
	// API server differ.
	Disagree int
}

// End returns the cost of what was done since a mark.
func (m *Meter) End(ctx context.Context, from Mark) (Use, error) {
	use := Use{Took: time.Since(from.at), CPU: map[string]time.Duration{}, Requests: Counts{}}
	now, err := cpu(m.Roots)
	if err != nil {
		return use, err
	}
	for name, used := range now {
		use.CPU[name] = used - from.cpu[name]
	}
	wrote, err := m.etcd.read(ctx)
	if err != nil {
		return use, err
	}
	use.Etcd = wrote.minus(from.etcd)
	to, err := m.audit.size()
	if err != nil {
		return use, err
	}
	seen := spans{}
	if err := m.audit.read(from.offset, to, func(e *entry, r Request) {
		use.Requests[r]++
		seen.add(e.At, r)
	}); err != nil {
		return use, err
	}
	use.Spans = seen.times()
	served, err := readServed(ctx, m.server)
	if err != nil {
		return use, err
	}
	use.Disagree = disagree(use.Requests, from.served, served)
	return use, nil
}

// CountSince returns how many requests since a mark match.
func (m *Meter) CountSince(from Mark, match func(Request) bool) (int, error) {
	to, err := m.audit.size()
	if err != nil {
		return 0, err
	}
	n := 0
	err = m.audit.read(from.offset, to, func(_ *entry, r Request) {
		if match(r) {
			n++
		}
	})
	return n, err
}

// ByUser returns the requests since a mark by who made them.
func (m *Meter) ByUser(from Mark) (map[string]Counts, error) {
	to, err := m.audit.size()
	if err != nil {
		return nil, err
	}
	out := map[string]Counts{}
	err = m.audit.read(from.offset, to, func(e *entry, r Request) {
		if out[e.User.Name] == nil {
			out[e.User.Name] = Counts{}
		}
		out[e.User.Name][r]++
	})
	return out, err
}

// disagree compares the audit log with the metrics.
func disagree(counts Counts, before, after served) int {
	difference := map[[2]string]int{}
	for key, n := range after {
		difference[key] += int(n - before[key])
	}
	for r, n := range counts {
		if r.Verb != "watch" {
			difference[[2]string{r.Verb, r.Resource}] -= n
		}
	}
	total := 0
	for _, n := range difference {
		total += max(n, -n)
	}
	return total
}

// Quiet waits until the audit log has had no request for a while that busy
// tells to be work.
func (m *Meter) Quiet(ctx context.Context, calm time.Duration, busy func(Request) bool) error {
	offset, err := m.audit.size()
	if err != nil {
		return err
	}
	last := time.Now()
	for time.Since(last) < calm {
		select {
		case <-ctx.Done():
			return fmt.Errorf("the fleet has not come to rest: %w", context.Cause(ctx))
		case <-time.After(calm / 10):
		}
		to, err := m.audit.size()
		if err != nil {
			return err
		}
		// A line that is not complete yet is work, if any, and counts now.
		if err := m.audit.read(offset, to, func(_ *entry, r Request) {
			if busy(r) {
				last = time.Now()
			}
		}); err != nil {
			return err
		}
		offset = to
	}
	return nil
}
