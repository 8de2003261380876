package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/flotilla-sh/flotilla/internal/bundle"
	"github.com/flotilla-sh/flotilla/internal/downstream"
	"github.com/flotilla-sh/flotilla/internal/effect"
	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/render"
	"github.com/flotilla-sh/flotilla/internal/target"
)

// rendering renders drafts for one cluster.
type rendering struct {
	*work
	cluster target.Cluster
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
	assigned, err := target.Assign(target.Input{
		Bundle:   target.Bundle{Namespace: r.cluster.Namespace, Name: draft.Name, Labels: draft.Labels, Spec: draft.Spec},
		Clusters: []target.Cluster{r.cluster},
	})
	switch {
	case err != nil:
		out.err = err
	case len(assigned) == 0:
		out.notes = append(out.notes, "does not go to a cluster with these labels")
	case assigned[0].Err != nil:
		out.err = fmt.Errorf("%w (labels are given with -l key=value, all that a Cluster has with --cluster)", draft.Placed(r.tree.FS, assigned[0].Err))
	default:
		r.fill(ctx, &out, draft, &assigned[0])
	}
	return out
}

func (r *rendering) fill(ctx context.Context, out *renderedBundle, draft *bundle.Draft, assigned *target.Assignment) {
	options := assigned.Options
	if why := effect.Holds(options); why != "" {
		out.notes = append(out.notes, why)
	}
	if fields := effect.OfBundle(&draft.Spec); len(fields) > 0 {
		out.notes = append(out.notes, effect.Condition(fields).Message)
	}
	copies, err := downstream.All(options, downstream.StandIns(downstream.Sources(options)))
	if err != nil {
		out.err = err
		return
	}
	result, err := r.pool.Render(ctx, render.Request{
		Files: draft.Files, SourceDigest: draft.SourceDigest, Bundle: draft.Name, Commit: r.tree.Commit,
		Options: *options, Capabilities: r.offers, Cluster: assigned.Cluster.Templating(), Copies: copies,
	})
	if err != nil {
		out.err = err
		return
	}
	out.objects = slices.DeleteFunc(result.Objects, func(o render.Object) bool { return o.Source == downstream.Origin })
	for _, c := range copies {
		out.notes = append(out.notes, fmt.Sprintf("the %s %s of the namespace %s on the hub is copied to the namespace %s; it is not shown", c.Kind, c.Name, r.cluster.Namespace, c.Namespace))
	}
	out.warnings = append(out.warnings, result.Warnings...)
	if result.NeedsCluster != "" {
		out.warnings = append(out.warnings, fault.Note{Message: "only its cluster can render this, the objects are those of an empty one: " + result.NeedsCluster})
	}
	if len(result.UnknownScope) > 0 {
		out.notes = append(out.notes, "the cluster decides whether these kinds have a namespace (say so with --api-versions): "+strings.Join(result.UnknownScope, ", "))
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
