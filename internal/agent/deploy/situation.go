package deploy

import (
	"strings"
	"time"
)

// Facts is everything that the next step of a deployment depends on.
type Facts struct {
	// Listed is true once the hub has said which deployments there are.
	Listed bool
	// Desired is true where the hub has the deployment, Recorded where this
	// cluster has something of it.
	Desired, Recorded bool

	// Mark is true where the hub's deployment carries a removal mark, Removing
	// where such a mark was confirmed before, and Deleting where it has a
	// deletion timestamp.
	Mark, Removing, Deleting bool
	// Older is true where the hub's generation is lower than one that was acted
	// on, as after a restored backup.
	Older bool
	// WentBack is true where the hub's generation is lower than one that was
	// acted on, and wants something else.
	WentBack bool
	// Beside is why this agent does nothing at all: another one is at work.
	Beside string
	// Hold is why the hub wants nothing to be changed now.
	Hold string
	// Refusal is why this agent cannot do what is asked.
	Refusal string
	// Blocked are the dependencies that are not in an accepted state.
	Blocked []string
	// Dependents are to be removed as well, and before this one.
	Dependents []string

	// Settling is how long objects that leave the deployment stay at least.
	Settling time.Duration

	// Finished is true where what is wanted is what was applied.
	Finished bool
	// Failed is why the release of what is wanted was given up.
	Failed string
	// Undo is true while what ran before is being put back.
	Undo bool
	// Waits is what the release of what is wanted waits for, and WaitIn how
	// long to do so without being told that it has changed. Late is true where
	// it has taken longer than it was given.
	Waits  string
	Late   bool
	WaitIn time.Duration
	// Noted is true where the record says what the hub says.
	Noted bool
	// Drifted is true where objects are not as they were applied, and Correct
	// where they are to be put back.
	Drifted, Correct bool
	// RetryIn is how long to wait before the next attempt at what failed.
	RetryIn time.Duration
}

// Situation names how a deployment stands.
type Situation string

// The situations of a deployment.
const (
	Unknown    Situation = "Unknown"
	Removed    Situation = "Removed"
	Marked     Situation = "MarkedForRemoval"
	Withdrawn  Situation = "RemovalMarkWithdrawn"
	Kept       Situation = "KeptWithoutHub"
	Deleting   Situation = "DeletedWithoutMark"
	WentBack   Situation = "GenerationWentBack"
	Refused    Situation = "Refused"
	Beside     Situation = "RancherFleetActive"
	Held       Situation = "Held"
	Blocked    Situation = "WaitingForDependencies"
	Settling   Situation = "Settling"
	Needed     Situation = "NeededByDependents"
	BackingOff Situation = "BackingOff"
	GivenUp    Situation = "GivenUp"
	Awaiting   Situation = "Awaiting"
	TooLate    Situation = "TooLate"
	Outdated   Situation = "Outdated"
	Drifted    Situation = "Drifted"
	Unnoted    Situation = "Unnoted"
	Settled    Situation = "Settled"
)

// Action is what is to be done.
type Action int

// The actions; each situation calls for one.
const (
	Rest Action = iota
	Forget
	Remove
	Deploy
	Correct
	Note
	Unmark
)

// Decision is a situation, the action that it calls for, and why nothing more
// is done, for people.
type Decision struct {
	Situation Situation
	Action    Action
	Message   string
	// After is when to look again by itself, where the action is to rest.
	After time.Duration
}

// blockedRetry is when to look at dependencies again that told nothing.
const blockedRetry = 15 * time.Second

// Decide names the situation and the one action that it calls for.
func Decide(f Facts) Decision {
	switch {
	case !f.Desired && !f.Recorded:
		return Decision{Situation: Unknown, Action: Forget}
	case f.Beside != "" && (f.Recorded || !f.Mark):
		return Decision{Situation: Beside, Message: f.Beside}
	case f.Removing && f.Desired && !f.Mark:
		return orRetry(f, Decision{Situation: Withdrawn, Action: Unmark})
	case f.Mark && f.Older && f.Recorded && !f.Removing:
		// An old mark that was withdrawn since comes back with a backup.
		return wentBack()
	case len(f.Dependents) > 0 && f.Recorded && (f.Mark || f.Removing):
		return Decision{Situation: Needed, After: blockedRetry, Message: "bundle(s) that depend on it are removed first: " + strings.Join(f.Dependents, ", ")}
	case f.Removing && (f.Mark || !f.Desired), f.Mark && f.Recorded:
		return orWait(f, Decision{Situation: Marked, Action: Remove})
	case f.Mark:
		return Decision{Situation: Removed}
	case !f.Desired:
		return local(f)
	}
	return wanted(f)
}

// local decides for a deployment of which the hub says nothing: it is kept, and
// it is finished and corrected as the hub last wanted it.
func local(f Facts) Decision {
	if f.Listed {
		d := Decision{Situation: Kept}
		if f.Finished {
			// A correction of half a release would apply the rest of it at once,
			// past its hooks and waves.
			d = correction(f, d)
		}
		d.Message = "the hub does not have this deployment, and did not mark it for removal: everything is kept"
		return d
	}
	if !f.Finished {
		return unfinished(f)
	}
	return correction(f, Decision{Situation: Settled})
}

// unfinished decides for a deployment whose release has not succeeded.
func unfinished(f Facts) Decision {
	switch {
	case len(f.Blocked) > 0:
		return Decision{Situation: Blocked, After: blockedRetry, Message: "dependent bundle(s) are not ready: " + strings.Join(f.Blocked, ", ")}
	case f.Failed != "" && !f.Undo:
		return Decision{Situation: GivenUp, Message: f.Failed}
	case f.WaitIn > 0 && f.Late:
		return Decision{Situation: TooLate, Message: f.Waits, After: f.WaitIn}
	case f.WaitIn > 0:
		return Decision{Situation: Awaiting, Message: f.Waits, After: f.WaitIn}
	}
	return orWait(f, Decision{Situation: Outdated, Action: Deploy})
}

// wanted decides for a deployment that the hub has, without a removal mark.
func wanted(f Facts) Decision {
	switch {
	case f.Deleting:
		return Decision{Situation: Deleting, Message: "the deployment is being deleted on the hub without a removal mark: everything on the cluster is kept"}
	case f.WentBack:
		return wentBack()
	case f.Refusal != "":
		return Decision{Situation: Refused, Message: f.Refusal}
	case f.Hold != "":
		return Decision{Situation: Held, Message: f.Hold}
	case !f.Finished:
		return unfinished(f)
	case !f.Noted:
		return orRetry(f, Decision{Situation: Unnoted, Action: Note})
	}
	return correction(f, Decision{Situation: Settled})
}

func wentBack() Decision {
	return Decision{Situation: WentBack, Message: "the hub's deployment is older than what runs here, as after a restored backup: nothing is changed. Deploy something newer from the hub, or delete this BundleDeployment on the hub to have it made anew (that removes nothing here)"}
}

func correction(f Facts, otherwise Decision) Decision {
	if !f.Drifted || !f.Correct {
		return otherwise
	}
	return orWait(f, Decision{Situation: Drifted, Action: Correct})
}

// orWait puts an action off that has failed a moment ago, or that objects leave
// with which another deployment may ask for.
func orWait(f Facts, d Decision) Decision {
	if f.RetryIn == 0 && f.Settling > 0 && d.Action != Correct {
		return Decision{Situation: Settling, After: f.Settling, Message: "objects leave this bundle; another one may take them over"}
	}
	return orRetry(f, d)
}

// orRetry puts an action off that has failed a moment ago.
func orRetry(f Facts, d Decision) Decision {
	if f.RetryIn > 0 {
		return Decision{Situation: BackingOff, After: f.RetryIn}
	}
	return d
}
