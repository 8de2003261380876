package render

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/render"
)

// failing is an engine whose renders fail.
type failing struct{ err error }

func (f failing) Render(context.Context, render.Request) (*render.Result, error) { return nil, f.err }

func TestErrorsOfSecretRendersRepeatNothing(t *testing.T) {
	cause := errors.New("near hunter2")
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"places": {
			err: fault.Stall("TemplateFailed", errors.Join(
				fault.At("templates/a.yaml", 3, cause), fault.In("templates/b.yaml", 0, fmt.Errorf("templates/b.yaml: %w", cause)), fault.At("templates/a.yaml", 3, cause))),
			want: "templates/a.yaml:3, templates/b.yaml: it cannot be rendered with the values of this cluster (TemplateFailed); ",
		},
		"no place":  {err: fault.Stall("InvalidValues", cause), want: "it cannot be rendered with the values of this cluster (InvalidValues); "},
		"waiting":   {err: fault.Wait(time.Minute, "Later", cause), want: "it cannot be rendered with the values of this cluster (Later); "},
		"transient": {err: cause, want: "it cannot be rendered with the values of this cluster; "},
	} {
		t.Run(name, func(t *testing.T) {
			out := &Result{Secret: true}
			err := (&Renderer{Engine: failing{test.err}}).rounds(t.Context(), nil, render.Request{}, nil, out)
			if !errors.Is(err, cause) {
				t.Fatalf("got %v", err)
			}
			got := discreet(err)
			if !strings.HasPrefix(got.Error(), test.want) || strings.Contains(got.Error(), "hunter2") || errors.Is(got, cause) {
				t.Errorf("got %q", got)
			}
			if fault.KindOf(got) != fault.KindOf(err) || fault.ReasonOf(got, "") != fault.ReasonOf(err, "") || fault.AfterOf(got) != fault.AfterOf(err) {
				t.Errorf("%#v is of another kind than %#v", got, err)
			}
		})
	}
}
