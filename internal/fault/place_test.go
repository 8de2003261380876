package fault_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-sh/flotilla/internal/fault"
)

func TestNotes(t *testing.T) {
	at := fault.At("a.yaml", 3, io.EOF)
	for name, tt := range map[string]struct {
		err  error
		text string
		want []fault.Note
	}{
		"nothing": {},
		"a plain error": {
			io.EOF, "EOF", []fault.Note{{Message: "EOF"}},
		},
		"a place": {
			at, "a.yaml:3: EOF", []fault.Note{{"a.yaml", 3, "EOF"}},
		},
		"a whole file": {
			fault.At("a.yaml", 0, io.EOF), "a.yaml: EOF", []fault.Note{{"a.yaml", 0, "EOF"}},
		},
		"a place that the error names": {
			fault.In("a.yaml", 3, errors.New("a is in a.yaml:3 twice")), "a is in a.yaml:3 twice", []fault.Note{{"a.yaml", 3, "a is in a.yaml:3 twice"}},
		},
		"under marks and words": {
			fmt.Errorf("cluster x: %w", fault.Stall("Bad", at)), "cluster x: a.yaml:3: EOF", []fault.Note{{"a.yaml", 3, "EOF"}},
		},
		"the innermost": {
			fault.At("fleet.yaml", 1, fmt.Errorf("values: %w", at)), "fleet.yaml:1: values: a.yaml:3: EOF", []fault.Note{{"a.yaml", 3, "EOF"}},
		},
		"several": {
			fault.Stall("Bad", errors.Join(at, io.ErrClosedPipe)), "a.yaml:3: EOF\nio: read/write on closed pipe",
			[]fault.Note{{"a.yaml", 3, "EOF"}, {Message: "io: read/write on closed pipe"}},
		},
		"several without a place": {
			fault.Stall("Bad", errors.Join(io.EOF, io.ErrClosedPipe)), "EOF\nio: read/write on closed pipe",
			[]fault.Note{{Message: "EOF"}, {Message: "io: read/write on closed pipe"}},
		},
		"words around errors without a place": {
			fmt.Errorf("read: %w", io.EOF), "read: EOF", []fault.Note{{Message: "read: EOF"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.err != nil && tt.err.Error() != tt.text {
				t.Errorf("text %q, want %q", tt.err, tt.text)
			}
			if diff := cmp.Diff(tt.want, fault.Notes(tt.err)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
