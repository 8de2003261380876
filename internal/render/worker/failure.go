package worker

import (
	"errors"
	"slices"
	"strings"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/render"
	"github.com/flotilla-sh/flotilla/internal/templating"
)

const (
	// maxText is how long a message may be: templates can fail with any text,
	// and messages end in objects of limited size.
	maxText = 16 << 10
	// maxNotes is how many notes are sent.
	maxNotes = 200
)

// short cuts a text where it is too long.
func short(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "…"
}

func shortened(notes []fault.Note) []fault.Note {
	var out []fault.Note
	for _, n := range notes[:min(len(notes), maxNotes)] {
		n.Message = short(n.Message)
		out = append(out, n)
	}
	return out
}

func packFailure(err error) *failure {
	f := &failure{
		Message: short(err.Error()), Kind: fault.KindOf(err),
		Reason: fault.ReasonOf(err, ""), After: fault.AfterOf(err),
	}
	missing := templating.Missing(err)
	f.Lacks = missing[:min(len(missing), maxNotes)]
	if notes := fault.Notes(err); slices.ContainsFunc(notes, func(n fault.Note) bool { return n.File != "" }) {
		f.Notes = shortened(notes)
	}
	if asked, ok := errors.AsType[*render.Failure](err); ok {
		f.Asked, f.HasAsked = asked.Asked, true
	}
	return f
}

// unpack makes an error of the same kind.
func (f *failure) unpack() error {
	err := f.cause()
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

// cause makes an error of the message that has the same parts.
func (f *failure) cause() error {
	if len(f.Notes) == 0 && len(f.Lacks) == 0 {
		return errors.New(f.Message)
	}
	told := &told{message: f.Message, lacks: f.Lacks}
	for _, note := range f.Notes {
		part := errors.New(note.Message)
		if note.File != "" {
			part = fault.At(note.File, note.Line, part)
		}
		told.parts = append(told.parts, part)
	}
	return told
}

// told is an error that another process told, with its parts.
type told struct {
	message string
	parts   []error
	lacks   []templating.Reference
}

func (t *told) Error() string { return t.message }

func (t *told) Unwrap() []error { return t.parts }

func (t *told) Lacks() []templating.Reference { return t.lacks }
