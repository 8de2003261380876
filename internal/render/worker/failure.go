package worker

import (
	"errors"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/render"
)

func packFailure(err error) *failure {
	f := &failure{
		Message: err.Error(), Kind: fault.KindOf(err),
		Reason: fault.ReasonOf(err, ""), After: fault.AfterOf(err),
	}
	if asked, ok := errors.AsType[*render.Failure](err); ok {
		f.Asked, f.HasAsked = asked.Asked, true
	}
	return f
}

// unpack makes an error of the same kind.
func (f *failure) unpack() error {
	err := errors.New(f.Message)
	switch f.Kind {
	case fault.Stalled:
		err = fault.Stall(f.Reason, err)
	case fault.Waiting:
		err = fault.Wait(f.After, f.Reason, err)
	}
	if f.HasAsked {
		return &render.Failure{Asked: f.Asked, Err: err}
	}
	return err
}
