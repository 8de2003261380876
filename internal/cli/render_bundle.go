package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/flotilla-sh/flotilla/internal/bundle"
	"github.com/flotilla-sh/flotilla/internal/downstream"
	"github.com/flotilla-sh/flotilla/internal/effect"
	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/pipeline"
	"github.com/flotilla-sh/flotilla/internal/render"
	"github.com/flotilla-sh/flotilla/internal/target"
	"github.com/flotilla-sh/flotilla/internal/templating"
)

// rendering renders drafts for one cluster.
type rendering struct {
	*work
	cluster target.Cluster
	stages  *pipeline.Stages
}

// renderedBundle is what became of one draft.
type renderedBundle struct {
	name, path string
	objects    []render.Object
	warnings   []fault.Note
	notes      []string
	err        error
}

func (r *rendering) all(ctx context.Context, drafts []bundle.Draft) []renderedBundle {
	out := make([]renderedBundle, len(drafts))
	var group sync.WaitGroup
	for i := range drafts {
		group.Go(func() { out[i] = r.one(ctx, &drafts[i]) })
	}
	group.Wait()
	return out
}

func (r *rendering) one(ctx context.Context, draft *bundle.Draft) renderedBundle {
	out := renderedBundle{name: draft.Name, path: r.shown(draft.Path), warnings: draft.Warnings, err: draft.Err}
	if out.err != nil {
		return out
	}
	in := pipeline.InputOf(draft, r.cluster.Namespace, r.tree.Commit, pipeline.Cluster{Cluster: r.cluster, Capabilities: r.offers})
	in.Preview = true
	outcomes, err := r.stages.Run(ctx, in)
	switch {
	case err != nil:
		out.err = err
	case len(outcomes) == 0:
		out.notes = append(out.notes, "does not go to a cluster with these labels")
	default:
		out.take(&outcomes[0])
		out.err = r.explain(draft, outcomes[0].Err)
		if fields := effect.OfBundle(&draft.Spec); len(fields) > 0 {
			out.notes = append(out.notes, effect.Condition(fields).Message)
		}
	}
	return out
}

// explain says of the bundle what is wrong with it on the cluster, with the place
// of templates in its values.
func (r *rendering) explain(draft *bundle.Draft, err error) error {
	if len(templating.Errors(err)) > 0 {
		return fmt.Errorf("%w (labels are given with -l key=value, all that a Cluster has with --cluster)", draft.Placed(r.tree.FS, err))
	}
	if wrong, ok := errors.AsType[*target.ClusterError](err); ok {
		return wrong.Err // there is no other cluster
	}
	return err
}

// take takes over what the cluster would get.
func (b *renderedBundle) take(o *pipeline.Outcome) {
	if o.Held != "" {
		b.notes = append(b.notes, o.Held)
	}
	if o.Preview != "" && o.Err == nil {
		b.warnings = append(b.warnings, fault.Note{Message: "only its cluster can render this, the objects are those of an empty one: " + o.Preview})
	}
	b.warnings = append(b.warnings, o.Warnings...)
	if o.Result == nil || o.Err != nil {
		return
	}
	for _, object := range o.Result.Objects {
		if object.Source != downstream.Origin {
			b.objects = append(b.objects, object)
			continue
		}
		b.notes = append(b.notes, fmt.Sprintf("the %s %s of the namespace %s on the hub is copied to the namespace %s; it is not shown",
			object.Kind, object.Name, o.Desired.ClusterNamespace, object.Namespace))
	}
	if unknown := o.Result.UnknownScope; len(unknown) > 0 {
		b.notes = append(b.notes, "the cluster decides whether these kinds have a namespace (say so with --api-versions): "+strings.Join(unknown, ", "))
	}
}

// tell writes what is worth knowing and returns the error of the bundle.
func (b *renderedBundle) tell(w io.Writer, strict bool) error {
	err := b.err
	for _, warning := range b.warnings {
		if strict && b.err == nil {
			err = errors.Join(err, errors.New(warning.String()))
			continue
		}
		fmt.Fprintf(w, "warning: %s\n", b.about(warning.String()))
	}
	for _, text := range b.notes {
		fmt.Fprintf(w, "note: %s\n", b.about(text))
	}
	if err == nil {
		return nil
	}
	return errors.New(b.about(err.Error()))
}

// about puts the bundle before a text.
func (b *renderedBundle) about(text string) string {
	return fmt.Sprintf("bundle %s: %s", b.name, strings.ReplaceAll(text, "\n", "\n  "))
}
