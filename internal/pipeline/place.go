package pipeline

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/flotilla-sh/flotilla/internal/content"
	"github.com/flotilla-sh/flotilla/internal/digest"
	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/render"
	"github.com/flotilla-sh/flotilla/internal/target"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// DefaultMaxRenders is how many different renders of one bundle the hub makes
// before it leaves them to the agents.
const DefaultMaxRenders = 500

// agentInput marks the input of a render that no render on the hub was needed
// to give to the agent.
const agentInput = "agent:"

// place is where an assignment is rendered.
type place struct {
	// agent is true where the agent renders.
	agent bool
	// why is for the bundle's author, who did not ask for it; empty where the
	// options do, which asked says.
	why, asked string
}

// placeOf says where options ask to be rendered. crowded is why the hub would
// rather not.
func placeOf(o *fleet.BundleDeploymentOptions, crowded string) (place, error) {
	from := o.Helm != nil && len(o.Helm.ValuesFrom) > 0
	switch {
	case o.Render == fleet.RenderHub && from:
		return place{}, needsCluster(valuesThere)
	case o.Render == fleet.RenderHub:
		return place{}, nil
	case from:
		return place{agent: true, asked: valuesThere}, nil
	case o.Render == fleet.RenderAgent:
		return place{agent: true, asked: "render: agent asks for that"}, nil
	}
	return place{agent: crowded != "", why: crowded}, nil
}

// valuesThere is why values from there leave a render to the cluster.
const valuesThere = "helm.valuesFrom is read on the cluster"

// preview renders what is the agent's to make as far as that can be known here.
// That it cannot be is no error: the cluster has what is missing.
func (r *run) preview(ctx context.Context, out *Outcome, req render.Request, at place) {
	out.Preview = cmp.Or(at.asked, at.why)
	result, err := r.stages.Renderer.Render(ctx, req)
	if err != nil {
		out.Preview += "; without that it cannot be rendered: " + err.Error()
		return
	}
	out.Result, out.Warnings = result, result.Warnings
}

// needsCluster is the error of a bundle that must be rendered on the hub and
// cannot.
func needsCluster(why string) error {
	return fault.Stall(ReasonNeedsCluster, errors.New(
		"only the cluster itself can render this, and render: hub forbids it: "+why+"; set render: auto"))
}

// crowd says why a bundle has too many different renders for the hub, or "".
// Where the agents render already they go on until it is clearly fewer, so that
// one cluster more or less does not move a bundle back and forth.
func (r *run) crowd(assignments []target.Assignment) string {
	most := r.stages.MaxRenders
	if most <= 0 {
		most = DefaultMaxRenders
	}
	limit := most
	for _, last := range r.in.Remembered {
		if strings.HasPrefix(last.Input, agentInput) {
			limit = most * 4 / 5
			break
		}
	}
	if len(assignments) <= limit {
		return ""
	}
	inputs := map[string]bool{}
	for i := range assignments {
		if a := &assignments[i]; a.Err == nil {
			req := r.request(a.Options, render.Capabilities{})
			if input, err := render.InputDigest(&req, nil); err == nil {
				inputs[input] = true
			}
		}
	}
	if len(inputs) <= limit {
		return ""
	}
	return fmt.Sprintf("it has %d different renders, and the hub makes at most %d of one bundle", len(inputs), most)
}

// request is what is rendered with these options.
func (r *run) request(o *fleet.BundleDeploymentOptions, offers render.Capabilities) render.Request {
	return render.Request{
		Files: r.in.Files, SourceDigest: r.in.SourceDigest, Bundle: r.in.Bundle.Name, Commit: r.in.Commit,
		Options: *o, Capabilities: offers,
	}
}

// inputOf names what the content of a deployment is made from, given the
// questions that a render on the hub asked.
func inputOf(req *render.Request, asked []string, at place) (string, error) {
	if at.agent && req.Options.TemplateManifests {
		asked = render.TemplateQuestions()
	}
	input, err := render.InputDigest(req, asked)
	if err != nil || !at.agent {
		return input, err
	}
	return agentInput + input, nil
}

// source makes the content that lets an agent render.
func (r *run) source(req render.Request) (*content.Encoded, error) {
	files, err := r.files()
	if err != nil {
		return nil, err
	}
	request := render.ForCluster(req)
	raw, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	return r.encode(digest.OfBytes(raw), nil, len(raw), func() (content.Encoded, error) {
		return content.EncodeSource(r.stages.Key, files, request)
	})
}
