package chart

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/source/chartref"
)

// The reasons of this package's errors, for conditions and events.
const (
	ReasonInvalid      = "InvalidChartReference"
	ReasonUnreachable  = "ChartServerUnreachable"
	ReasonUnauthorized = "ChartUnauthorized"
	ReasonUntrusted    = "ChartServerUntrusted"
	ReasonNotFound     = "ChartNotFound"
	ReasonTooLarge     = "ChartTooLarge"
	ReasonArchive      = "InvalidChartArchive"
	ReasonChanged      = "ChartChanged"
	ReasonUnverified   = "ChartNotVerified"
)

// retryRefused is how long to leave a server alone that said no, or sent what is
// no chart: it can be mended there, where the hub sees no change.
const retryRefused = 5 * time.Minute

func wait(reason, format string, args ...any) error {
	return fault.Wait(retryRefused, reason, fmt.Errorf(format, args...))
}

func stall(reason, format string, args ...any) error {
	return fault.Stall(reason, fmt.Errorf(format, args...))
}

func transient(err error) error {
	return fault.Retry(ReasonUnreachable, err)
}

// explain turns an error of the layers below into one for the person who must
// act. It never repeats a query, a login or what a server sent.
func explain(ctx context.Context, address string, err error) error {
	if err == nil || fault.ReasonOf(err, "") != "" {
		return err
	}
	place := chartref.Place(address)
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	if ctx.Err() != nil {
		return transient(fmt.Errorf("%s did not answer in the time allowed", place))
	}
	if e, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return wait(ReasonUntrusted, "the certificate of %s is not trusted: %w; "+
			"put the certificate of its authority into the Secret that helmSecretName names, as %s", place, e.Err, keyCACerts)
	}
	if e, ok := errors.AsType[*redirectError](err); ok {
		return wait(ReasonUnreachable, "%s %w", place, e)
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // what it wraps repeats the whole URL
	}
	return transient(fmt.Errorf("cannot reach %s: %w; check the URL and that the hub can get there (DNS, proxy, firewall), or configure a --mirror", place, err))
}

// refusal explains an answer that is no content.
func refusal(address string, status int, a Access) error {
	place := chartref.Place(address)
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		if a.anonymous() {
			return wait(ReasonUnauthorized, "%s asks for a login and none is sent: "+
				"name a Secret in helmSecretName, and set helmRepoURLRegex to an expression that matches the whole URL", place)
		}
		return wait(ReasonUnauthorized, "%s does not accept the credentials: check that they are right and have not expired", place)
	case status == http.StatusNotFound || status == http.StatusGone:
		return wait(ReasonNotFound, "there is nothing at %s, or these credentials may not see it: check the URL", place)
	}
	return transient(fmt.Errorf("%s answered %d %s; it will be asked again", place, status, http.StatusText(status)))
}
