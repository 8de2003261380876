package deploy

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-sh/flotilla/internal/agent/state"
	"github.com/flotilla-sh/flotilla/internal/apply"
	"github.com/flotilla-sh/flotilla/internal/observe"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// job is one deployment as the agent knows it. Its fields are replaced, never
// changed in place, under the controller's lock.
type job struct {
	name string
	// desired is what the hub has; nil where it has nothing.
	desired *fleet.BundleDeployment
	// record is what this cluster has; nil where it has nothing.
	record *state.Record
	// unsaved is true where the record is newer than what is stored; unstored
	// counts the failures to store it since.
	unsaved  bool
	unstored int

	// reported is the status that the hub has, as JSON, of statusVersion.
	reported      []byte
	statusVersion string
	// unsure says that nobody knows whether the hub has the last report.
	unsure bool
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

	// stale is true from when the values on the cluster are found to be others
	// than those of the last release, until a release with them has begun;
	// valuesDue is when to look at them again.
	stale     bool
	valuesDue time.Time
	// made is the last render of this cluster, whether it was applied or not.
	made *made

	// unplannable is what could not be rendered for others to know of.
	unplannable unplannable

	// told is what the people of this cluster were told last.
	told tale

	trouble trouble
	awaits  awaiting
	spell   spell
	// found counts what was found about the objects.
	found    int
	removal  *fleet.RemovalStatus
	observed map[apply.Ref]observe.Finding
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
		if j.givenUp() && !j.stale {
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

// drifted tells whether an object is not as it was applied.
func (j *job) drifted() bool {
	for _, o := range j.observed {
		if o.Drift != nil {
			return true
		}
	}
	return false
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

// receive takes in what the hub says of the job, and tells whether it says
// anything new.
func (j *job) receive(bd *fleet.BundleDeployment) bool {
	news := j.desired == nil || j.desired.UID != bd.UID || j.desired.Generation != bd.Generation ||
		(j.desired.DeletionTimestamp == nil) != (bd.DeletionTimestamp == nil)
	if j.desired != nil && j.desired.UID != bd.UID {
		j.removal = nil // that was another deployment's
	}
	j.desired = lean(bd)
	if bd.ResourceVersion == j.statusVersion || observe.Older(bd.ResourceVersion, j.statusVersion) {
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
