package apply

import (
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flotilla-sh/flotilla/internal/fault"
)

// The reasons of an object's failure.
const (
	// ReasonOwned: another bundle, tool or person has the object.
	ReasonOwned = "OwnedByAnother"
	// ReasonNoKind: the cluster does not serve the object's kind.
	ReasonNoKind = "UnknownKind"
	// ReasonScope: a cluster-scoped object is forced into a namespace.
	ReasonScope = "ClusterScoped"
	// ReasonTwice: the bundle has the object twice.
	ReasonTwice = "DuplicateObject"
	// ReasonRejected: the API server or an admission webhook refused it.
	ReasonRejected = "Rejected"
	// ReasonForbidden: the account's rights, a policy or a quota do not allow it.
	ReasonForbidden = "Forbidden"
	// ReasonImmutable: the object cannot be changed in place.
	ReasonImmutable = "Immutable"
	// ReasonTerminating: the live object is being deleted.
	ReasonTerminating = "Terminating"
	// ReasonUndecided: it left the bundle, and another one may want it.
	ReasonUndecided = "HandOverUndecided"
	// ReasonNoNamespace: the namespace is missing and is not to be created.
	ReasonNoNamespace = "NamespaceMissing"
)

const (
	// ownedRetry is when to look again whether an owner has let go, and
	// kindRetry whether a kind has appeared.
	ownedRetry = 30 * time.Second
	kindRetry  = 30 * time.Second
	// forbiddenRetry is when to look again whether what was forbidden is
	// allowed, and namespaceRetry whether a namespace is gone.
	forbiddenRetry = time.Minute
	namespaceRetry = 5 * time.Second
	// terminatingRetry is when to look again whether an object is gone.
	terminatingRetry = 2 * time.Second
	// undecidedRetry is when to look again whether another bundle wants what
	// has left one.
	undecidedRetry = 5 * time.Second
)

func stall(reason string, err error) error { return fault.Stall(reason, err) }

// noKind marks the error about an unknown kind as one that may pass.
func noKind(err error) error {
	if _, ok := errors.AsType[*NoKindError](err); ok {
		return fault.Wait(kindRetry, ReasonNoKind, err)
	}
	return err
}

// isObjectError tells whether an error is about one object only; any other
// means that the cluster cannot be reached or used.
func isObjectError(err error) bool {
	return fault.KindOf(err) != fault.Transient
}

// rejected gives a server's refusal its kind. Rights, policies and quotas are
// changed on the cluster and not in Git, so that what they refuse is tried
// again; a webhook that cannot be reached is an error of the server.
func rejected(it item, err error) error {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		return err
	}
	said := words(it, err, status)
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return fault.Wait(namespaceRetry, ReasonTerminating, fmt.Errorf("the namespace %s is being deleted; it is applied again once that is gone", it.ref.Namespace))
	case apierrors.IsForbidden(err):
		return fault.Wait(forbiddenRetry, ReasonForbidden, said)
	case IsRefusal(err):
		return stall(ReasonRejected, said)
	}
	return said
}

// words are what the server said. About an object with secret values it may
// quote them, so that only the fields are named.
func words(it item, err error, status *apierrors.StatusError) error {
	if !it.secret {
		return err
	}
	return fmt.Errorf("the API server refused the %s%s%s; its words may quote secret values and are not repeated",
		it.ref.Kind, reasonText(err), causeFields(status))
}

// immutable says of an object that was refused as a change, and would be
// accepted as a new one, what to do.
func immutable(it item, err error) error {
	status, _ := errors.AsType[*apierrors.StatusError](err)
	advice := "set helm.force to have it deleted and made anew, or give it another name"
	if Holds(it.ref) {
		advice = "it is never deleted to be made anew, for what is in it would go too: give it another name, or put back what it had"
	}
	return stall(ReasonImmutable, fmt.Errorf("it cannot be changed in place: %w; %s", words(it, err, status), advice))
}

// IsRefused tells whether an object was refused by its cluster, rather than not
// tried, or taken by another.
func IsRefused(err error) bool {
	switch fault.ReasonOf(err, "") {
	case ReasonRejected, ReasonForbidden, ReasonImmutable:
		return true
	}
	return false
}

func reasonText(err error) string {
	if reason := apierrors.ReasonForError(err); reason != "" {
		return " (" + string(reason) + ")"
	}
	return ""
}

func causeFields(status *apierrors.StatusError) string {
	details := status.ErrStatus.Details
	if details == nil {
		return ""
	}
	var fields []string
	for _, cause := range details.Causes {
		if cause.Field != "" {
			fields = append(fields, cause.Field)
		}
	}
	if len(fields) == 0 {
		return ""
	}
	return " because of " + strings.Join(fields, ", ")
}

// IsRefusal tells whether a server's answer means that it would refuse the same
// request again.
func IsRefusal(err error) bool {
	if err == nil {
		return false
	}
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) ||
		apierrors.IsMethodNotSupported(err) || apierrors.IsRequestEntityTooLargeError(err) ||
		apierrors.IsUnsupportedMediaType(err) || apierrors.IsNotFound(err)
}

// guardFailed tells whether a write was not done because its object exists, is
// gone, or is another one than the writer knew.
func guardFailed(err error) bool {
	if apierrors.IsConflict(err) {
		return true
	}
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || !apierrors.IsInvalid(err) || status.ErrStatus.Details == nil {
		return false
	}
	for _, cause := range status.ErrStatus.Details.Causes {
		if cause.Field == "metadata.uid" {
			return true
		}
	}
	return false
}

// namespaceMissing returns the namespace whose absence made a write fail.
func namespaceMissing(err error) (string, bool) {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || !apierrors.IsNotFound(err) || status.ErrStatus.Details == nil {
		return "", false
	}
	d := status.ErrStatus.Details
	return d.Name, d.Kind == "namespaces" && d.Name != ""
}
