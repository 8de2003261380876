package deploy

import (
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-sh/flotilla/internal/agent/state"
	"github.com/flotilla-sh/flotilla/internal/apply"
	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/observe"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

const (
	// backoffMin and backoffMax bound the wait after failures.
	backoffMin = time.Second
	backoffMax = 5 * time.Minute
	// correctionCalm is how long nothing must drift for corrections to be
	// made at once again.
	correctionCalm = 10 * time.Minute
)

// job is one deployment as the agent knows it. Its fields are replaced, never
// changed in place, under the controller's lock.
type job struct {
	name string
	// desired is what the hub has; nil where it has nothing.
	desired *fleet.BundleDeployment
	// record is what this cluster has; nil where it has nothing.
	record *state.Record
	// unsaved is true where the record is newer than what is stored.
	unsaved bool

	// reported is the status that the hub has, as JSON, of statusVersion.
	reported      []byte
	statusVersion string
	// unreported counts the reports that failed since.
	unreported int

	// arrived is when the hub's last word was received, or the agent started.
	arrived time.Time
	// settling is what is put off for a moment because objects leave with it.
	settling settling

	// fetched is what its last fetch took; nil where this process made none.
	fetched *fetched

	// since is when each condition became what it is.
	since map[string]since

	// trackedSince is when the objects were last given to the observer.
	trackedSince time.Time

	// stale is true where the values on the cluster are others than those that
	// the content was rendered with; valuesDue is when to look at them again.
	stale     bool
	valuesDue time.Time
	// made is the last render of this cluster, whether it was applied or not.
	made *made

	// told is what the people of this cluster were told last.
	told tale

	trouble trouble
	awaits  awaiting
	// found counts what was found about the objects.
	found    int
	removal  *fleet.RemovalStatus
	observed map[apply.Ref]observe.Finding
}

// trouble is what has failed, and when to try again.
type trouble struct {
	// id is what failed to be deployed.
	id       string
	failures []apply.Failure
	err      error
	attempts int
	until    time.Time
	// corrected is when drift was last put right.
	corrected time.Time
}

// failed returns the trouble after one more failure.
func (t trouble) failed(id string, failures []apply.Failure, err error, now time.Time) trouble {
	if t.id != id {
		t = trouble{id: id}
	}
	t.attempts++
	t.failures, t.err = failures, err
	t.until = now.Add(t.delay())
	return t
}

// after returns the trouble after something was found, or not, since what has
// failed was tried: what waits for something is tried again at once.
func (t trouble) after(found bool) trouble {
	if found && fault.KindOf(t.err) == fault.Waiting {
		t.until = time.Time{}
	}
	return t
}

// correcting returns the trouble after drift was put right: the next time is
// put off for longer while somebody keeps changing things back.
func (t trouble) correcting(id string, now time.Time) trouble {
	if t.id != id || now.Sub(t.corrected) > correctionCalm {
		t = trouble{id: id}
	} else {
		t.attempts++
		t.until = now.Add(t.delay())
	}
	t.corrected = now
	return t
}

// delay is how long to wait: as long as the errors ask, where all of them
// wait for something, else longer from time to time.
func (t trouble) delay() time.Duration {
	if fault.KindOf(t.err) == fault.Waiting {
		return fault.AfterOf(t.err)
	}
	shortest := time.Duration(0)
	for _, f := range t.failures {
		if fault.KindOf(f.Err) != fault.Waiting {
			shortest = 0
			break
		}
		if after := fault.AfterOf(f.Err); shortest == 0 || after < shortest {
			shortest = after
		}
	}
	if shortest > 0 && t.err == nil {
		return shortest
	}
	return min(backoffMin<<min(max(t.attempts-1, 0), 12), backoffMax)
}

// awaitsLook tells whether the state of an object was not read yet.
func (j *job) awaitsLook() bool {
	if j.record == nil {
		return false
	}
	for _, e := range j.record.Inventory {
		if _, known := j.observed[e.Identity()]; e.Health && e.UID != "" && !known {
			return true
		}
	}
	return false
}

// wantedID is the deployment ID to run.
func (j *job) wantedID() string {
	if j.desired != nil {
		return j.desired.Spec.DeploymentID
	}
	if j.record != nil {
		return j.record.DeploymentID
	}
	return ""
}

// attemptID names what is attempted: to run a deployment ID, or to remove the
// deployment. What failed of the one says nothing about the other.
func (j *job) attemptID() string {
	if j.leaves() {
		return "removal"
	}
	return j.wantedID()
}

// want is what the hub has, or what is noted of it while the hub is away.
func (j *job) want() *fleet.BundleDeployment {
	if j.desired != nil {
		return j.desired
	}
	bd := &fleet.BundleDeployment{}
	bd.Name = j.name
	if r := j.record; r != nil {
		bd.UID, bd.Generation = types.UID(r.UID), r.Generation
		bd.Labels = maps.Clone(r.Labels)
		if bd.Labels == nil {
			bd.Labels = map[string]string{}
		}
		bd.Labels[fleet.BundleLabel], bd.Labels[fleet.BundleNamespaceLabel] = r.Bundle, r.BundleNamespace
		bd.Spec.DeploymentID, bd.Spec.Options, bd.Spec.DependsOn = r.DeploymentID, r.Options, r.DependsOn
	}
	return bd
}

// facts puts together what is known of a job.
func (j *job) facts(listed bool, now time.Time) Facts {
	f := Facts{Listed: listed, Desired: j.desired != nil, Recorded: j.record != nil}
	if j.trouble.id == j.attemptID() {
		f.RetryIn = max(0, j.trouble.until.Sub(now))
	}
	f.Settling = j.settling.left(j.attemptID(), now)
	if j.awaits.id == j.wantedID() && j.awaits.until.After(now) {
		f.Waits, f.Late, f.WaitIn = j.awaits.message, j.awaits.late, j.awaits.until.Sub(now)
	}
	if r := j.record; r != nil {
		if r.Release != nil && r.Release.ID == j.wantedID() && !j.stale {
			f.Failed, f.Undo = r.Release.Failed, r.Release.Phase == state.Undo
		}
		f.Removing = r.Removing
		f.Finished = j.finished() && !j.stale
		f.Correct = r.CorrectDrift != nil && r.CorrectDrift.Enabled
	}
	f.Drifted = j.drifted()
	if d := j.desired; d != nil {
		f.Mark, f.Deleting = d.Spec.Removal != nil, d.DeletionTimestamp != nil
		f.Refusal, f.Hold = refusal(&d.Spec), hold(&d.Spec)
		f.Noted = j.record != nil && noted(j.record, d)
		f.Older = older(j.record, d)
		f.WentBack = f.Older && !f.Finished
		f.Correct = correct(d) != nil && correct(d).Enabled
	}
	return f
}

// older tells whether the hub's deployment is one that this cluster has left
// behind.
func older(r *state.Record, d *fleet.BundleDeployment) bool {
	return r != nil && r.UID == string(d.UID) && d.Generation < r.Generation
}

// finished tells whether what is wanted was applied.
func (j *job) finished() bool {
	return j.record != nil && j.record.Applied != "" && j.record.Applied == j.wantedID()
}

// appliedBefore is what is known to be applied once an apply has begun: nothing
// where the same deployment is applied with other values.
func (j *job) appliedBefore() string {
	if j.record == nil || j.finished() {
		return ""
	}
	return j.record.Applied
}

// drifted tells whether an object is not as it was applied.
func (j *job) drifted() bool {
	for _, o := range j.observed {
		if o.Drift != nil {
			return true
		}
	}
	return false
}

// refusal is why a deployment cannot be done as asked. What restricts a
// deployment is never passed over.
func refusal(spec *fleet.BundleDeploymentSpec) string {
	switch {
	case spec.Options.AllowedTargetNamespaceSelector != nil:
		return "allowedTargetNamespaceSelector is set, and this agent cannot check it yet: nothing is deployed"
	case spec.HelmChartOptions != nil:
		return "the chart is in a repository that this agent cannot read yet"
	case spec.Content == nil && spec.Removal == nil && spec.DeploymentID != "":
		return "the deployment names no content: it was not written by a Flotilla hub"
	}
	return ""
}

// hold is why the hub wants nothing changed.
func hold(spec *fleet.BundleDeploymentSpec) string {
	switch {
	case spec.Paused:
		return "paused"
	case spec.OffSchedule:
		return "outside of its schedule"
	case spec.WaitingForValues:
		return "waiting for its values"
	case spec.DeploymentID == "":
		return "nothing is promoted yet"
	}
	return ""
}

func correct(d *fleet.BundleDeployment) *fleet.CorrectDrift {
	return cmp.Or(d.Spec.CorrectDrift, d.Spec.Options.CorrectDrift)
}

// noted tells whether the record holds what the hub wants.
func noted(r *state.Record, d *fleet.BundleDeployment) bool {
	return r.Generation == d.Generation && r.UID == string(d.UID) && reflect.DeepEqual(r.CorrectDrift, correct(d))
}

// next returns the record with what the hub wants put into it.
func (j *job) next() *state.Record {
	r := &state.Record{Name: j.name}
	if j.record != nil {
		copied := *j.record
		r = &copied
	}
	if d := j.desired; d != nil {
		r.UID, r.Generation = string(d.UID), d.Generation
		r.Bundle, r.BundleNamespace = bundleOf(d)
		r.DependsOn, r.Labels = d.Spec.DependsOn, d.Labels
		r.DeploymentID, r.Options, r.CorrectDrift = d.Spec.DeploymentID, d.Spec.Options, correct(d)
	}
	return r
}

// bundle returns the owner of the job's objects.
func (j *job) bundle() apply.Owner {
	if j.record != nil {
		return j.record.Owner()
	}
	return j.next().Owner()
}

// bundleOf returns the name and namespace of a deployment's bundle.
func bundleOf(d *fleet.BundleDeployment) (name, namespace string) {
	return cmp.Or(d.Labels[fleet.BundleLabel], d.Name), cmp.Or(d.Labels[fleet.BundleNamespaceLabel], d.Namespace)
}

// lean returns the part of a deployment that the agent keeps.
func lean(bd *fleet.BundleDeployment) *fleet.BundleDeployment {
	out := &fleet.BundleDeployment{Spec: bd.Spec}
	out.Name, out.Namespace, out.UID = bd.Name, bd.Namespace, types.UID(bd.UID)
	out.ResourceVersion, out.Generation = bd.ResourceVersion, bd.Generation
	out.DeletionTimestamp, out.Labels = bd.DeletionTimestamp, bd.Labels
	return out
}

// receive takes in what the hub says of the job, and tells whether it says
// anything new.
func (j *job) receive(bd *fleet.BundleDeployment) bool {
	news := j.desired == nil || j.desired.UID != bd.UID || j.desired.Generation != bd.Generation ||
		(j.desired.DeletionTimestamp == nil) != (bd.DeletionTimestamp == nil)
	if j.desired != nil && j.desired.UID != bd.UID {
		j.removal = nil // that was another deployment's
	}
	j.desired = lean(bd)
	if bd.ResourceVersion == j.statusVersion || olderVersion(bd.ResourceVersion, j.statusVersion) {
		return news
	}
	reported, err := json.Marshal(bd.Status)
	if err != nil {
		return news
	}
	news = news || !slices.Equal(reported, j.reported)
	j.reported, j.statusVersion = reported, bd.ResourceVersion
	return news
}

// olderVersion compares resource versions, which are numbers that grow.
func olderVersion(a, b string) bool {
	x, errX := strconv.ParseUint(a, 10, 64)
	y, errY := strconv.ParseUint(b, 10, 64)
	return errX == nil && errY == nil && x < y
}
