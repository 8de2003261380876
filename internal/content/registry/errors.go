package registry

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/flotilla-sh/flotilla/internal/fault"
)

// Reasons of errors.
const (
	ReasonUnreachable  = "RegistryUnreachable"
	ReasonUnauthorized = "RegistryUnauthorized"
)

// Pauses after an error of a registry, at least: a fleet that waits for one must
// not come back at once.
const (
	unreachableRetry  = 30 * time.Second
	unauthorizedRetry = 2 * time.Minute
	failedFor         = 5 * time.Second
	// jitter is by how much more they may be longer.
	jitter = 0.5
)

// fail remembers an error that the next caller would only meet again.
func (r *Registry) fail(err error) error {
	if Unreachable(err) || Unauthorized(err) {
		r.failed, r.until = err, r.clock.Now().Add(failedFor)
	}
	return err
}

func isStatus(err error, codes ...int) bool {
	answer, ok := errors.AsType[*errcode.ErrorResponse](err)
	if !ok {
		return false
	}
	for _, code := range codes {
		if answer.StatusCode == code {
			return true
		}
	}
	return false
}

// Unauthorized tells whether a registry refused the credentials.
func Unauthorized(err error) bool {
	return isStatus(err, http.StatusUnauthorized, http.StatusForbidden) || errors.Is(err, auth.ErrBasicCredentialNotFound)
}

// explain says what went wrong at which registry, and what to do about it.
func (r *Registry) explain(what string, err error) error {
	at := "registry " + r.access.Reference
	switch {
	case err == nil:
		return nil
	case Unauthorized(err):
		return fault.Wait(wait.Jitter(unauthorizedRetry, jitter), ReasonUnauthorized, fmt.Errorf(
			"%s: %s refuses the credentials of %q: correct the username and password in its Secret, or what they may do there: %w", what, at, r.access.Username, err))
	case Unreachable(err):
		return fault.Wait(wait.Jitter(unreachableRetry, jitter), ReasonUnreachable, fmt.Errorf("%s: %s does not answer: %w", what, at, err))
	}
	return fmt.Errorf("%s: %s: %w", what, at, err)
}
