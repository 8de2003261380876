package deploy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-sh/flotilla/internal/apply"
	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/observe"
	"github.com/flotilla-sh/flotilla/internal/status"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

const (
	// maxNamed is the number of objects that one message names.
	maxNamed = 3
	// maxMessage bounds the length of one message.
	maxMessage = 1024
)

// statusOf returns what the agent says of a job in a situation, built on what
// it said before.
func (j *job) statusOf(d Decision, now time.Time) (fleet.BundleDeploymentStatus, error) {
	var s fleet.BundleDeploymentStatus
	if len(j.reported) > 0 {
		if err := json.Unmarshal(j.reported, &s); err != nil {
			return s, fmt.Errorf("read the last status: %w", err)
		}
	}
	want := j.want()
	s.ObservedGeneration = want.Generation
	s.RemovalState = j.removalState(s.RemovalState, d)
	if j.fetched != nil {
		s.Fetched = &j.fetched.total
	}
	j.objects(&s)
	j.conditions(&s, d, now)
	bd := &fleet.BundleDeployment{Spec: want.Spec, Status: s}
	s.Display = fleet.BundleDeploymentDisplay{
		Deployed:  shownCondition(s.Conditions, fleet.ConditionDeployed),
		Monitored: shownCondition(s.Conditions, fleet.ConditionMonitored),
		State:     string(status.StateOf(bd)),
	}
	return s, nil
}

// removalState is how far a removal is. A marked deployment of which this
// cluster has nothing is removed: it never came here, or the agent ended
// between removing it and saying so.
func (j *job) removalState(reported *fleet.RemovalStatus, d Decision) *fleet.RemovalStatus {
	switch {
	case d.Situation == Needed, d.Situation == Beside && j.desired != nil && j.desired.Spec.Removal != nil:
		return &fleet.RemovalStatus{Message: d.Message}
	case j.removal != nil || d.Situation != Removed:
		return j.removal
	case reported != nil && reported.Done:
		return reported
	}
	return &fleet.RemovalStatus{Done: true}
}

// objects fills in what is known of the objects.
func (j *job) objects(s *fleet.BundleDeploymentStatus) {
	s.AppliedDeploymentID, s.InventoryCount, s.HeldObjects = "", 0, nil
	s.ModifiedStatus, s.NonReadyStatus, s.Resources, s.IncompleteState = nil, nil, nil, false
	s.ResourceCounts, s.Ready, s.NonModified = fleet.ResourceCounts{}, false, true
	r := j.record
	if r == nil {
		return
	}
	s.AppliedDeploymentID, s.InventoryCount = j.appliedID(), len(r.Inventory)
	generation := r.Options.ForceSyncGeneration
	s.SyncGeneration = &generation
	for _, ref := range r.Held {
		s.HeldObjects = append(s.HeldObjects, objectRef(ref))
	}
	s.ResourceCounts.DesiredReady = len(r.Inventory)
	for _, e := range sorted(r.Inventory) {
		count(s, e, j.observed)
	}
	for _, ref := range j.beside() {
		modified(s, j.observed[ref])
	}
	s.ResourceCounts.WaitApplied = len(j.trouble.failures)
	s.ResourceCounts.DesiredReady += j.unlisted()
	// What is missing makes it modified; what was never applied as a whole is
	// not ready, however well its first objects do.
	s.Ready = r.Applied != "" && s.ResourceCounts.NotReady+s.ResourceCounts.Unknown == 0
	s.NonModified = s.ResourceCounts.Modified+s.ResourceCounts.Missing == 0
}

// beside are what is not as the deployment has set it, and none of its objects:
// its namespace.
func (j *job) beside() []apply.Ref {
	var out []apply.Ref
	for ref, f := range j.observed {
		if f.Drift != nil && !slices.ContainsFunc(j.record.Inventory, func(e apply.Entry) bool { return e.Identity() == ref }) {
			out = append(out, ref)
		}
	}
	return out
}

// unlisted is the number of objects that failed and are not in the inventory.
func (j *job) unlisted() int {
	n := 0
	for _, f := range j.trouble.failures {
		if !slices.ContainsFunc(j.record.Inventory, func(e apply.Entry) bool { return e.Identity() == f.Ref.Identity() }) {
			n++
		}
	}
	return n
}

func sorted(inventory apply.Inventory) apply.Inventory {
	out := slices.Clone(inventory)
	slices.SortFunc(out, func(a, b apply.Entry) int { return a.Ref.Compare(b.Ref) })
	return out
}

// count puts one object into the lists and the counts.
func count(s *fleet.BundleDeploymentStatus, e apply.Entry, observed map[apply.Ref]observe.Finding) {
	finding, known := observed[e.Identity()]
	switch {
	case e.UID == "":
		s.ResourceCounts.WaitApplied++
		return
	case known && finding.Drift != nil:
		modified(s, finding)
	case known && !finding.Health.Ready:
		s.ResourceCounts.NotReady++
		notReady(s, e, finding.Health)
	case !known && e.Health:
		s.ResourceCounts.Unknown++
		notReady(s, e, observe.Health{Message: "its state was not read yet"})
	default:
		s.ResourceCounts.Ready++
		return
	}
	if len(s.Resources) < fleet.MaxStatusObjects {
		s.Resources = append(s.Resources, fleet.BundleDeploymentResource{
			Kind: e.Kind, APIVersion: e.APIVersion(), Namespace: e.Namespace, Name: e.Name,
		})
	}
}

func modified(s *fleet.BundleDeploymentStatus, f observe.Finding) {
	if f.Drift.Create && !f.Drift.Exist {
		s.ResourceCounts.Missing++
	} else {
		s.ResourceCounts.Modified++
	}
	if len(s.ModifiedStatus) == fleet.MaxStatusObjects {
		s.IncompleteState = true
		return
	}
	s.ModifiedStatus = append(s.ModifiedStatus, *f.Drift)
}

func notReady(s *fleet.BundleDeploymentStatus, e apply.Entry, h observe.Health) {
	if len(s.NonReadyStatus) == fleet.MaxStatusObjects {
		s.IncompleteState = true
		return
	}
	state := "in progress"
	if h.Failed {
		state = "failed"
	}
	s.NonReadyStatus = append(s.NonReadyStatus, fleet.NonReadyStatus{
		UID: types.UID(e.UID), Kind: e.Kind, APIVersion: e.APIVersion(), Namespace: e.Namespace, Name: e.Name,
		Summary: fleet.Summary{State: state, Error: h.Failed, Transitioning: !h.Failed, Message: []string{cut(h.Message)}},
	})
}

func objectRef(r apply.Ref) fleet.ObjectRef {
	return fleet.ObjectRef{APIVersion: r.APIVersion(), Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

// conditions fills in the four conditions of a deployment.
func (j *job) conditions(s *fleet.BundleDeploymentStatus, d Decision, now time.Time) {
	set := func(kind, reason, message string, ok bool) {
		c := fleet.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: cut(message)}
		if !ok {
			c.Status = metav1.ConditionFalse
		}
		j.setCondition(&s.Conditions, c, now)
	}
	reason, problem := j.problem(d)
	if problem != "" && (d.Situation == Blocked || j.waits()) {
		// What is expected to pass is no failure.
		j.setCondition(&s.Conditions, fleet.Condition{
			Type: fleet.ConditionDeployed, Status: metav1.ConditionUnknown, Reason: reason, Message: cut(problem),
		}, now)
	} else {
		set(fleet.ConditionDeployed, reason, problem, problem == "")
	}
	if j.record != nil && j.record.Applied != "" {
		set(fleet.ConditionInstalled, "", "", true)
		set(fleet.ConditionMonitored, "", "", true)
	}
	message := j.readyMessage(s, problem, d)
	set(fleet.ConditionReady, readyReason(s, message), message, message == "")
}

// waits tells whether what is wanted waits for something on the cluster.
func (j *job) waits() bool {
	return j.trouble.id == j.wantedID() && !j.finished() && fault.KindOf(j.trouble.err) == fault.Waiting
}

// problem is why what is wanted is not applied.
func (j *job) problem(d Decision) (reason, message string) {
	switch d.Situation {
	case Refused, Beside, WentBack, Blocked, Deleting, GivenUp, TooLate:
		return string(d.Situation), d.Message
	}
	if j.trouble.id != j.attemptID() || j.finished() && !j.drifted() && !j.failsAnew() {
		return "", ""
	}
	if j.trouble.err != nil && (!j.finished() || j.failsAnew()) {
		return fault.ReasonOf(j.trouble.err, "Error"), j.trouble.err.Error()
	}
	if len(j.trouble.failures) > 0 {
		return "ObjectsFailed", failureText(j.trouble.failures)
	}
	return "", ""
}

func failureText(failures []apply.Failure) string {
	var parts []string
	for _, f := range failures[:min(len(failures), maxNamed)] {
		parts = append(parts, f.Error())
	}
	text := strings.Join(parts, "; ")
	if more := len(failures) - maxNamed; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// readyMessage is what kubectl shows as status; empty where all is well.
func (j *job) readyMessage(s *fleet.BundleDeploymentStatus, problem string, d Decision) string {
	if s.RemovalState != nil {
		return "being removed: " + s.RemovalState.Message
	}
	if problem != "" {
		return problem
	}
	if s.AppliedDeploymentID != j.wantedID() {
		if d.Message != "" {
			return "not applied yet: " + d.Message
		}
		return "not applied yet"
	}
	var parts []string
	for _, m := range s.ModifiedStatus[:min(len(s.ModifiedStatus), maxNamed)] {
		parts = append(parts, status.ModifiedText(m))
	}
	for _, n := range s.NonReadyStatus[:min(len(s.NonReadyStatus), maxNamed)] {
		parts = append(parts, status.NonReadyText(n))
	}
	return strings.Join(parts, "; ")
}

func readyReason(s *fleet.BundleDeploymentStatus, message string) string {
	switch {
	case message == "":
		return ""
	case !s.NonModified:
		return string(fleet.Modified)
	}
	return string(fleet.NotReady)
}

// shownCondition is what kubectl shows of a condition.
func shownCondition(conditions []fleet.Condition, kind string) string {
	c := fleet.FindCondition(conditions, kind)
	switch {
	case c == nil:
		return ""
	case c.Message == "":
		return string(c.Status)
	}
	return c.Message
}

func cut(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessage], "") + "…"
}

// statusPatch returns the merge patch from the status that the hub has to the
// one that it should have, or nothing where they are equal.
func statusPatch(reported []byte, s fleet.BundleDeploymentStatus) (patch, now []byte, err error) {
	now, err = json.Marshal(s)
	if err != nil {
		return nil, nil, fmt.Errorf("encode the status: %w", err)
	}
	if len(reported) == 0 {
		reported = []byte("{}")
	}
	change, err := jsonpatch.CreateMergePatch(reported, now)
	if err != nil {
		return nil, nil, fmt.Errorf("compare the status: %w", err)
	}
	if string(change) == "{}" {
		return nil, now, nil
	}
	return []byte(`{"status":` + string(change) + `}`), now, nil
}
