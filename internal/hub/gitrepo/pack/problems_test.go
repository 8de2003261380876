package pack

import (
	"errors"
	"testing"

	"github.com/flotilla-sh/flotilla/internal/bundle"
	"github.com/flotilla-sh/flotilla/internal/fault"
)

func TestProblems(t *testing.T) {
	if err := problems([]bundle.Draft{{Name: "a"}, {Name: "b"}}, nil); err != nil {
		t.Errorf("nothing is wrong, and it is %q", err)
	}
	err := problems([]bundle.Draft{{Name: "a"}, {Name: "b", Err: fault.Stall("Bad", errors.New("b is bad"))}}, errors.New("c cannot be read"))
	if err == nil || err.Error() != "c cannot be read; b is bad" || fault.KindOf(err) != fault.Transient {
		t.Errorf("got %v", err)
	}
}
