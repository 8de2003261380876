package target

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/templating"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// Matcher is a bundle with its selectors compiled. It may be kept as long as
// the bundle's spec does not change, and used by many goroutines.
type Matcher struct {
	bundle Bundle
	// targets are the criteria of Spec.Targets, of which the first custom ones
	// are customizations.
	targets      []criteria
	custom       int
	restrictions []criteria
	templated    bool
}

// NewMatcher compiles the selectors of a bundle. An invalid one is an error for
// the whole bundle, since nobody can say whom it was to select.
func NewMatcher(bundle Bundle) (*Matcher, error) {
	m := &Matcher{bundle: bundle, templated: usesTemplates(&bundle.Spec)}
	var errs []error
	for i := range bundle.Spec.Targets {
		t := &bundle.Spec.Targets[i]
		criteria, err := compile(fleet.GitTarget{
			ClusterName: t.ClusterName, ClusterSelector: t.ClusterSelector,
			ClusterGroup: t.ClusterGroup, ClusterGroupSelector: t.ClusterGroupSelector,
		})
		m.targets = append(m.targets, criteria)
		errs = append(errs, located(err, "targets", i, t.Name))
	}
	for i := range bundle.Spec.TargetRestrictions {
		r := &bundle.Spec.TargetRestrictions[i]
		criteria, err := compile(fleet.GitTarget(*r))
		m.restrictions = append(m.restrictions, criteria)
		errs = append(errs, located(err, "targetRestrictions", i, r.Name))
	}
	if len(m.restrictions) > 0 {
		m.custom = max(0, len(m.targets)-len(m.restrictions))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fault.Stall(ReasonInvalidSelector, fmt.Errorf("bundle %s/%s: %w", bundle.Namespace, bundle.Name, err))
	}
	return m, nil
}

func located(err error, list string, index int, name string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s[%d] %q: %w", list, index, name, err)
}

// selection is what was chosen for a cluster: indexes into Spec.Targets.
type selection struct {
	target  int
	customs []int
}

func (s selection) equal(other selection) bool {
	return s.target == other.target && slices.Equal(s.customs, other.customs)
}

// key names the options that a selection leads to.
func (s selection) key() string { return fmt.Sprint(s.target, s.customs) }

// MayMatch tells whether cluster gets the bundle.
func (m *Matcher) MayMatch(cluster *Cluster) bool {
	_, ok := m.choose(cluster)
	return ok
}

// AsksFor tells whether it matters to the bundle who is in a cluster group.
func (m *Matcher) AsksFor(g Group) bool {
	asks := func(c criteria) bool { return c.asksFor(g) }
	return slices.ContainsFunc(m.targets, asks) || slices.ContainsFunc(m.restrictions, asks)
}

// GroupNames are the names of the cluster groups that targets and restrictions
// ask for.
func (m *Matcher) GroupNames() []string {
	var out []string
	for _, c := range slices.Concat(m.targets, m.restrictions) {
		if c.group != "" {
			out = append(out, c.group)
		}
	}
	return out
}

// Affected tells whether the change of a cluster from before to after can change
// what the bundle gives to it. Either may be nil: a cluster that comes or goes.
func (m *Matcher) Affected(before, after *Cluster) bool {
	if before == nil || after == nil {
		return before != nil && m.MayMatch(before) || after != nil && m.MayMatch(after)
	}
	was, had := m.choose(before)
	is, has := m.choose(after)
	switch {
	case had != has || has && !was.equal(is):
		return true
	case !has:
		return false
	}
	return before.Paused != after.Paused ||
		before.DeploymentNamespace != after.DeploymentNamespace ||
		m.templated && !sameContext(before, after)
}

// sameContext tells whether templates see the same of both.
func sameContext(a, b *Cluster) bool {
	x, y := a.Templating(), b.Templating()
	return reflect.DeepEqual(x, y) || reflect.DeepEqual(x.Seen(), y.Seen())
}

// choose finds the target and the customizations for a cluster, and whether it
// gets the bundle at all.
func (m *Matcher) choose(cluster *Cluster) (selection, bool) {
	if len(m.restrictions) > 0 && !matchesAny(m.restrictions, cluster) {
		return selection{}, false
	}
	target := m.firstMatch(cluster, m.custom, len(m.targets))
	if target < 0 || m.bundle.Spec.Targets[target].DoNotDeploy {
		return selection{}, false
	}
	customs, ok := m.chooseCustoms(cluster)
	return selection{target: target, customs: customs}, ok
}

func (m *Matcher) chooseCustoms(cluster *Cluster) ([]int, bool) {
	all := m.bundle.Spec.TargetCustomizationMode == fleet.AllMatches
	var chosen []int
	for i := m.firstMatch(cluster, 0, m.custom); i >= 0; i = m.firstMatch(cluster, i+1, m.custom) {
		if m.bundle.Spec.Targets[i].DoNotDeploy {
			return nil, false
		}
		chosen = append(chosen, i)
		if !all {
			break
		}
	}
	return chosen, true
}

// firstMatch returns the first target from index from that is below end and
// matches, or -1.
func (m *Matcher) firstMatch(cluster *Cluster, from, end int) int {
	for i := from; i < end; i++ {
		if m.targets[i].Match(cluster) {
			return i
		}
	}
	return -1
}

func matchesAny(some []criteria, cluster *Cluster) bool {
	for i := range some {
		if some[i].Match(cluster) {
			return true
		}
	}
	return false
}

// usesTemplates tells whether anything in spec is filled in for each cluster.
func usesTemplates(spec *fleet.BundleSpec) bool {
	uses := func(o *fleet.BundleDeploymentOptions) bool { return o.TemplateManifests || helmUsesTemplates(o.Helm) }
	return uses(&spec.BundleDeploymentOptions) ||
		slices.ContainsFunc(spec.Targets, func(t fleet.BundleTarget) bool { return uses(&t.BundleDeploymentOptions) })
}

func helmUsesTemplates(h *fleet.HelmOptions) bool {
	if h == nil {
		return false
	}
	for _, text := range h.TemplateValues {
		if templating.InValues(text) {
			return true
		}
	}
	return h.Values != nil && templating.InValues(h.Values.Data)
}
