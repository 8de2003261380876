package lease

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

const (
	// seenEvery is how often a Cluster is written only because its agent goes on
	// reporting.
	seenEvery = 15 * time.Minute
	// longestVersion bounds the version of a cluster.
	longestVersion = 63
)

// version is what Kubernetes calls itself.
var version = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z.+_-]*$`)

// describe puts what an agent says of itself on its Cluster; report is nil where
// it says nothing that is taken. When it was seen last is written with what else
// has changed, and from time to time as its heartbeats come in.
func describe(s *fleet.ClusterStatus, report *fleet.AgentReport, last sight, now time.Time, changed bool) {
	if report != nil {
		was := fleet.AgentReport{
			Namespace: s.Agent.Namespace, KubernetesVersion: s.Agent.KubernetesVersion, UnknownDeployments: s.UnknownDeployments,
		}
		changed = changed || *report != was
		s.Agent.Namespace, s.Agent.KubernetesVersion = report.Namespace, report.KubernetesVersion
		s.UnknownDeployments = report.UnknownDeployments
	}
	seen := last.lastSeen(now)
	if age := seen.Sub(s.Agent.LastSeen.Time); changed && age > 0 || last.moved && age >= seenEvery {
		s.Agent.LastSeen = metav1.NewTime(seen)
	}
}

// lastSeen is when an agent reported last. Where this hub did not see it happen,
// that is what the agent says.
func (s sight) lastSeen(now time.Time) time.Time {
	if s.moved {
		return s.at
	}
	if s.renewed.After(now) {
		return now
	}
	return s.renewed
}

// reportOf reads what an agent says of itself; nil where it says nothing. An
// agent may write there what it likes, so nothing is taken that is not as it
// must be.
func reportOf(lease *coordinationv1.Lease) (*fleet.AgentReport, error) {
	raw := says(lease)
	if raw == "" {
		return nil, nil
	}
	r := &fleet.AgentReport{}
	err := check(raw, r)
	if err != nil {
		return nil, fmt.Errorf("what the agent says of itself is not taken: annotation %s of its Lease %s/%s %w; is the agent of this hub's version?",
			fleet.AgentReportAnnotation, lease.Namespace, lease.Name, err)
	}
	return r, nil
}

// check reads a report. Its errors do not repeat what may be anything.
func check(raw string, r *fleet.AgentReport) error {
	if len(raw) > fleet.AgentReportMost {
		return fmt.Errorf("is longer than %d bytes", fleet.AgentReportMost)
	}
	if err := json.Unmarshal([]byte(raw), r); err != nil {
		return fmt.Errorf("is not read: %w", err)
	}
	switch {
	case r.Namespace != "" && len(validation.IsDNS1123Label(r.Namespace)) > 0:
		return fmt.Errorf("has a namespace that cannot be one")
	case r.KubernetesVersion != "" && (len(r.KubernetesVersion) > longestVersion || !version.MatchString(r.KubernetesVersion)):
		return fmt.Errorf("has a kubernetesVersion that cannot be one")
	case r.UnknownDeployments < 0:
		return fmt.Errorf("has a number of unknownDeployments below 0")
	}
	return nil
}

// says is what an agent says of itself, as it wrote it.
func says(lease *coordinationv1.Lease) string { return lease.Annotations[fleet.AgentReportAnnotation] }

// Trim takes out of a cached Lease what an agent may write there without bound.
// What is too long stays too long.
func Trim(lease *coordinationv1.Lease) {
	for key, text := range lease.Annotations {
		if len(text) > fleet.AgentReportMost {
			lease.Annotations[key] = strings.Clone(text[:fleet.AgentReportMost+1])
		}
	}
}
