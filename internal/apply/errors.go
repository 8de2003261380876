package apply

import (
	"errors"
	"fmt"
	"strings"
	"time"

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

// rejected gives a server's refusal its kind. What the server answers about an
// object with secret values may quote them, so only the fields are named.
func rejected(it item, err error) error {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		return err
	}
	refusal := IsRefusal(err)
	if it.secret {
		err = fmt.Errorf("the API server refused the %s%s%s; its words may quote secret values and are not repeated",
			it.ref.Kind, reasonText(err), causeFields(status))
	}
	if !refusal {
		return err
	}
	return stall(ReasonRejected, err)
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
