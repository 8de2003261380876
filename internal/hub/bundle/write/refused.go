package write

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/flotilla-sh/flotilla/internal/fault"
)

// reasonRefused is why a Bundle waits which the API server does not take.
const reasonRefused = "BundleRefused"

// refused gives what the API server does not take the kind of what may pass: the
// quota, policy or right that refuses it is not in the sight of the hub, and to ask
// often helps nobody.
func refused(err error) error {
	switch {
	case fault.KindOf(err) != fault.Transient:
		return err
	case apierrors.IsInvalid(err), apierrors.IsRequestEntityTooLargeError(err):
		err = fmt.Errorf("%w; make it smaller or split it where it is too large, else correct what is named", err)
	case apierrors.IsForbidden(err):
		err = fmt.Errorf("%w; a quota, a policy or a missing right on the hub's API server refuses it", err)
	default:
		return err
	}
	return fault.Wait(wait.Jitter(again, jitter), reasonRefused, err)
}
