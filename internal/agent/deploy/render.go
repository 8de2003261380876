package deploy

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/flotilla-sh/flotilla/internal/agent/render"
	"github.com/flotilla-sh/flotilla/internal/agent/state"
	"github.com/flotilla-sh/flotilla/internal/backoff"
	"github.com/flotilla-sh/flotilla/internal/content"
	"github.com/flotilla-sh/flotilla/internal/digest"
	engine "github.com/flotilla-sh/flotilla/internal/render"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// valuesEvery is how often the values that are kept on the cluster are looked
// at, give or take jitter.
const valuesEvery = 5 * time.Minute

// atOnce looks at a deployment again at once.
const atOnce = time.Millisecond

// renderedKey names what the agent renders. The names stay on its cluster.
var renderedKey = content.Key("flotilla-agent")

// renderHere makes next's content what this cluster renders of a source. One
// input is rendered once: what is random stays as it is.
func (c *Controller) renderHere(ctx context.Context, j job, source content.Ref, next *state.Record) error {
	values, err := c.values(ctx, next.Options)
	if err != nil {
		return err
	}
	input := renderInput(source, values)
	if next.Rendered != nil && next.Rendered.Input == input && len(next.Refs) > 0 {
		return nil
	}
	if made := j.made; made != nil && made.Input == input {
		// An attempt to apply it has failed before.
		next.Refs, next.Rendered = made.refs, &made.Rendered
		return nil
	}
	var request engine.Request
	var took content.Fetched
	request.Files, took, err = content.FetchSource(ctx, c.origin(next.Registry), c.sources, source, &request)
	c.count(j.name, source, took)
	if err != nil {
		return err
	}
	engine, err := c.as(ctx, next.Options)
	if err != nil {
		return err
	}
	result, err := c.renderer.Render(ctx, engine.Client(), request, values)
	if err != nil {
		return err
	}
	encoded, err := content.NewEncoder(renderedKey).Objects(result.Objects)
	if err != nil {
		return err
	}
	made := &made{refs: c.store.Keep(j.name, encoded), Rendered: state.Rendered{Source: source.Digest, Input: input, Secret: result.Secret}}
	c.update(j.name, func(j *job) { j.made = made })
	next.Refs, next.Rendered = made.refs, &made.Rendered
	return nil
}

// made is a render of this cluster that is not applied yet.
type made struct {
	state.Rendered
	refs []content.Ref
}

// renderInput names what a render on the cluster depends on. What it looks up
// is no part of it: that changes with every pod.
func renderInput(source content.Ref, values render.Values) string {
	return digest.Of([]byte(source.Digest), []byte(values.Digest))
}

func (c *Controller) values(ctx context.Context, o fleet.BundleDeploymentOptions) (render.Values, error) {
	if o.Helm == nil || len(o.Helm.ValuesFrom) == 0 {
		return render.Values{}, nil
	}
	engine, err := c.as(ctx, o)
	if err != nil {
		return render.Values{}, err
	}
	return render.ReadValues(ctx, engine.Client(), render.From{
		Refs: o.Helm.ValuesFrom, Namespace: releaseNamespace(o), Copies: o.DownstreamResources,
	})
}

// usedInput is what the last release of what is wanted was rendered from, where
// it is over and values of the cluster went into it: a release under way reads
// them by itself. Without the hub nothing can be rendered anew.
func (j *job) usedInput() string {
	d, r := j.desired, j.record
	switch {
	case d == nil || r == nil || j.leaves() || d.Spec.Content == nil || !d.Spec.Content.Source,
		d.Spec.Options.Helm == nil || len(d.Spec.Options.Helm.ValuesFrom) == 0:
		return ""
	case j.givenUp() && r.Release.Input != "":
		return r.Release.Input
	case r.Rendered != nil && (j.finished() || j.givenUp()):
		return r.Rendered.Input
	}
	return ""
}

// checkValues looks whether the values of a deployment have changed since it
// was released, and returns when to look again; 0 where it has none.
func (c *Controller) checkValues(ctx context.Context, j job) time.Duration {
	used := j.usedInput()
	if used == "" {
		return 0
	}
	if left := j.valuesDue.Sub(c.clock.Now()); left > 0 {
		return left
	}
	spec := &j.desired.Spec
	values, err := c.values(ctx, spec.Options)
	// What cannot be read has not changed: it runs on with what it has.
	stale := err == nil && renderInput(content.Ref{Digest: spec.Content.Digest}, values) != used
	after := backoff.Spread(valuesEvery, 0.2, rand.Float64)
	c.update(j.name, func(j *job) {
		if stale && !j.stale {
			j.trouble.until = time.Time{} // what failed was with other values
		}
		j.valuesDue, j.stale = c.clock.Now().Add(after), stale
	})
	if stale {
		return atOnce
	}
	return after
}
