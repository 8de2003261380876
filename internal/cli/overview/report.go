package overview

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-sh/flotilla/internal/status"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// States beside those of deployments.
const (
	stateRemoving = "Removing"
	stateUnknown  = "Unknown"
	stateHeld     = "HeldBack"
)

// Make makes a report of the objects.
func Make(in Input) Report {
	in = only(in)
	m := &maker{silent: map[string]string{}, out: Report{
		namespace: in.Namespace, gitRepo: in.GitRepo, Unread: in.Unread,
		GitRepos: []GitRepo{}, HelmOps: []HelmOp{}, Clusters: []Cluster{}, Bundles: []Bundle{},
		Deployments: []Deployment{}, Problems: []Problem{}, Notes: []Problem{},
	}}
	for i := range in.GitRepos {
		m.gitRepo(&in.GitRepos[i])
	}
	for i := range in.HelmOps {
		m.helmOp(&in.HelmOps[i])
	}
	for i := range in.Bundles {
		m.bundle(&in.Bundles[i])
	}
	for i := range in.Clusters {
		m.cluster(&in.Clusters[i])
	}
	for i := range in.Deployments {
		m.deployment(&in.Deployments[i])
	}
	for i := range in.Bundles {
		m.unseen(&in.Bundles[i])
	}
	m.sort()
	m.out.Ready = len(m.out.Problems) == 0 && m.out.allReady()
	return m.out
}

// allReady tells whether every roll-up says so: one that lags behind its
// deployments is no evidence that they are.
func (r *Report) allReady() bool {
	for _, g := range r.GitRepos {
		if g.State != string(fleet.Ready) {
			return false
		}
	}
	for _, h := range r.HelmOps {
		if h.State != string(fleet.Ready) {
			return false
		}
	}
	for _, b := range r.Bundles {
		if b.State != string(fleet.Ready) {
			return false
		}
	}
	for _, c := range r.Clusters {
		if c.State != string(fleet.Ready) {
			return false
		}
	}
	return true
}

// only leaves out what does not belong to the GitRepo that is asked for, and
// clusters elsewhere that nothing is on.
func only(in Input) Input {
	if in.GitRepo != "" {
		in = ofRepo(in)
	}
	reached := map[string]bool{}
	for i := range in.Deployments {
		reached[status.PlaceOf(&in.Deployments[i]).Cluster.String()] = true
	}
	in.Clusters = keep(in.Clusters, func(c *fleet.Cluster) bool {
		here := in.GitRepo == "" && (in.Namespace == "" || c.Namespace == in.Namespace)
		return here || reached[c.Namespace+"/"+c.Name]
	})
	return in
}

func ofRepo(in Input) Input {
	of := func(labels map[string]string) bool { return labels[fleet.RepoLabel] == in.GitRepo }
	in.GitRepos = keep(in.GitRepos, func(r *fleet.GitRepo) bool { return r.Name == in.GitRepo })
	in.HelmOps = nil
	in.Bundles = keep(in.Bundles, func(b *fleet.Bundle) bool { return of(b.Labels) })
	in.Deployments = keep(in.Deployments, func(d *fleet.BundleDeployment) bool { return of(d.Labels) })
	return in
}

func keep[T any](all []T, good func(*T) bool) []T {
	var out []T
	for i := range all {
		if good(&all[i]) {
			out = append(out, all[i])
		}
	}
	return out
}

// maker makes one report.
type maker struct {
	out Report
	// silent is what to say of the deployments of clusters whose agent does not
	// report, by namespace/name.
	silent map[string]string
}

func (m *maker) gitRepo(r *fleet.GitRepo) {
	m.out.GitRepos = append(m.out.GitRepos, GitRepo{
		Namespace: r.Namespace, Name: r.Name, Commit: r.Status.Commit,
		Ready: r.Status.Summary.Ready, Wanted: r.Status.Summary.DesiredReady,
		State: stateOf(r.Status.Conditions),
	})
	at := Problem{Kind: "GitRepo", Namespace: r.Namespace, Name: r.Name}
	m.origin(at, &r.Status.StatusBase, r.Status.Commit != "")
	if r.DeletionTimestamp != nil {
		m.note(at, stateRemoving, "it is being deleted, and waits until its bundles are gone")
	}
}

// waiting tells of a condition that nobody can answer, for another reason than
// a silent cluster.
func waiting(ready *fleet.Condition) bool {
	return ready != nil && ready.Status == metav1.ConditionUnknown && ready.Reason != fleet.ReasonOffline
}

// blocked adds what keeps an object from being worked on. Several conditions
// may tell of one cause.
func (m *maker) blocked(at Problem, conditions []fleet.Condition) int {
	told := map[string]bool{}
	for _, bad := range []struct {
		conditionType string
		status        metav1.ConditionStatus
	}{
		{fleet.ConditionAccepted, metav1.ConditionFalse},
		{fleet.ConditionGitPolling, metav1.ConditionFalse},
		{fleet.ConditionPolled, metav1.ConditionFalse},
		{fleet.ConditionStalled, metav1.ConditionTrue},
	} {
		c := fleet.FindCondition(conditions, bad.conditionType)
		if c == nil || c.Status != bad.status || told[c.Message] {
			continue
		}
		told[c.Message] = true
		m.problem(at, cmp.Or(c.Reason, c.Type), c.Message)
	}
	return len(told)
}

// remark notes what was accepted, and is not as its author will have meant it.
func (m *maker) remark(at Problem, conditions []fleet.Condition) {
	c := fleet.FindCondition(conditions, fleet.ConditionEffective)
	if c != nil && c.Status == metav1.ConditionFalse {
		m.note(at, c.Reason, c.Message)
	}
	c = fleet.FindCondition(conditions, fleet.ConditionWarnings)
	if c != nil && c.Status == metav1.ConditionTrue {
		m.note(at, c.Reason, c.Message)
	}
}

func (m *maker) bundle(b *fleet.Bundle) {
	m.out.Bundles = append(m.out.Bundles, Bundle{
		Namespace: b.Namespace, Name: b.Name, GitRepo: b.Labels[fleet.RepoLabel],
		Ready: b.Status.Summary.Ready, Wanted: b.Status.Summary.DesiredReady,
		State: stateOf(b.Status.Conditions), HeldBack: b.Status.HeldBack,
	})
	at := Problem{Kind: "Bundle", Namespace: b.Namespace, Name: b.Name}
	rendered := fleet.FindCondition(b.Status.Conditions, fleet.ConditionRendered)
	switch {
	case rendered == nil && b.Status.ObservedGeneration == 0:
		m.problem(at, stateUnknown, "the hub has not looked at it yet")
	case rendered == nil || rendered.Status == metav1.ConditionTrue:
	case b.Status.HeldBack > 0:
		m.problem(at, stateHeld, rendered.Message)
	default:
		m.problem(at, cmp.Or(rendered.Reason, rendered.Type), rendered.Message)
	}
	m.remark(at, b.Status.Conditions)
	switch {
	case b.DeletionTimestamp != nil:
		m.note(at, stateRemoving, "it is being deleted, and waits until its clusters have removed it")
	case b.Spec.Paused:
		m.note(at, "Paused", "changes are not deployed")
	case b.Labels[fleet.RepoLabel] == "" && b.Labels[fleet.HelmOpLabel] == "" && rendered != nil && rendered.Status == metav1.ConditionTrue && b.Status.Summary.DesiredReady == 0:
		m.note(at, "NoClusters", "no cluster gets it: do its targets match the labels of a cluster?")
	}
}

func (m *maker) cluster(c *fleet.Cluster) {
	shown := Cluster{
		Namespace: c.Namespace, Name: c.Name, Version: c.Status.Agent.KubernetesVersion,
		Ready: c.Status.Summary.Ready, Wanted: c.Status.Summary.DesiredReady,
		State: stateOf(c.Status.Conditions),
	}
	at := Problem{Kind: "Cluster", Namespace: c.Namespace, Name: c.Name}
	online := fleet.FindCondition(c.Status.Conditions, fleet.ConditionOnline)
	unregistered := m.unregistered(at, c.Status.Conditions)
	switch {
	case online != nil && online.Status == metav1.ConditionTrue:
		if online.Reason == fleet.ReasonReportRefused {
			m.note(at, online.Reason, online.Message)
		}
	case online != nil && online.Status == metav1.ConditionFalse:
		shown.State = string(fleet.StateOffline)
		m.silent[c.Namespace+"/"+c.Name] = shown.State
		m.problem(at, shown.State, online.Message)
	default:
		shown.State = fleet.ReasonNeverSeen
		m.silent[c.Namespace+"/"+c.Name] = stateUnknown
		if !unregistered {
			m.problem(at, shown.State, "its agent has not reported yet: does it run, and does it reach the hub?")
		}
	}
	if n := c.Status.UnknownDeployments; n > 0 {
		m.note(at, "Kept", counted(n, "deployment", "deployments")+" on it that this hub does not know; nothing is removed")
	}
	if c.Spec.Paused {
		m.note(at, "Paused", "changes are not deployed to it")
	}
	m.out.Clusters = append(m.out.Clusters, shown)
}

// unregistered adds why the hub has no place for a cluster; its agent has
// nowhere to report then.
func (m *maker) unregistered(at Problem, conditions []fleet.Condition) bool {
	c := fleet.FindCondition(conditions, fleet.ConditionProcessed)
	if c == nil || c.Status != metav1.ConditionFalse {
		return false
	}
	m.problem(at, cmp.Or(c.Reason, c.Type), c.Message)
	return true
}

// stateOf is the reason of the Ready condition, which is the worst state or
// else what stands in the way.
func stateOf(conditions []fleet.Condition) string {
	c := fleet.FindCondition(conditions, fleet.ConditionReady)
	if c == nil {
		return stateUnknown
	}
	if c.Status == metav1.ConditionTrue {
		return string(fleet.Ready)
	}
	return cmp.Or(c.Reason, "NotReady")
}

func (m *maker) problem(at Problem, state, message string) {
	at.State, at.Message = state, message
	m.out.Problems = append(m.out.Problems, at)
}

func (m *maker) note(at Problem, state, message string) {
	at.State, at.Message = state, message
	m.out.Notes = append(m.out.Notes, at)
}

func (m *maker) sort() {
	slices.SortFunc(m.out.GitRepos, func(a, b GitRepo) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(m.out.HelmOps, func(a, b HelmOp) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(m.out.Bundles, func(a, b Bundle) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(m.out.Clusters, func(a, b Cluster) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(m.out.Deployments, func(a, b Deployment) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Bundle, b.Bundle))
	})
	// A kind's problems are added together; within it they go by name.
	for _, list := range [][]Problem{m.out.Problems, m.out.Notes} {
		slices.SortStableFunc(list, func(a, b Problem) int {
			return cmp.Or(cmp.Compare(rank(a.Kind), rank(b.Kind)), cmp.Compare(a.Cluster, b.Cluster),
				cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
		})
	}
}

// rank puts causes before what they cause.
func rank(kind string) int {
	return slices.Index([]string{"GitRepo", "HelmOp", "Bundle", "Cluster", "BundleDeployment"}, kind)
}
