// Package pipeline is the hub's line of stages on one page: a bundle meets
// clusters, its options are merged and templated for each, what they make
// different is rendered once, and the result is named by its digest. The
// controllers, the command line and the tests use it alike.
package pipeline

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/flotilla-sh/flotilla/internal/cache"
	"github.com/flotilla-sh/flotilla/internal/content"
	"github.com/flotilla-sh/flotilla/internal/deployment"
	"github.com/flotilla-sh/flotilla/internal/downstream"
	"github.com/flotilla-sh/flotilla/internal/effect"
	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/render"
	"github.com/flotilla-sh/flotilla/internal/source"
	"github.com/flotilla-sh/flotilla/internal/target"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// concurrency bounds the renders of one bundle that are asked for at once; the
// renderer has a bound of its own.
const concurrency = 8

// Reasons of errors that hold a cluster back.
const (
	ReasonNeedsCluster = "NeedsCluster"
	ReasonHeld         = "Held"
	ReasonNotReported  = "NotReported"
)

// notReported is how soon a cluster that has not reported is looked at again;
// its report is also an event.
const notReported = time.Minute

// Stages is the line of stages.
type Stages struct {
	// Renderer renders; one with a memory makes equal inputs cost one render.
	Renderer render.Renderer
	// Key names content.
	Key content.Key
	// MaxRenders is how many different renders of one bundle are made here
	// before its clusters make them; DefaultMaxRenders where 0.
	MaxRenders int
}

// Cluster is a cluster and what it offers to renders.
type Cluster struct {
	target.Cluster
	Capabilities render.Capabilities
}

// Remembered is what a cluster's deployment says of its last render.
type Remembered struct {
	Input   string
	Asked   []string
	Content fleet.ContentRef
}

// Input is a bundle, its files and the clusters that it might go to.
type Input struct {
	Bundle target.Bundle
	Files  []source.File
	// SourceDigest is the digest of Files.
	SourceDigest string
	// Commit the files are of.
	Commit   string
	Clusters []Cluster
	// Copies are the Secrets and ConfigMaps that the options name.
	Copies map[downstream.Source]downstream.Copy
	// Remembered are earlier renders by deployment namespace. One whose input
	// is unchanged is not rendered again.
	Remembered map[string]Remembered
	// Keep, where set, stores what a cluster gets as soon as it is made, and
	// outcomes do not hold it: that of a fleet does not fit into memory. It is
	// called for each cluster without an error, with nil where the content of an
	// earlier render is still good.
	Keep func(ctx context.Context, namespace string, enc *content.Encoded) error
	// Preview is set where people look and nothing is deployed: what only the
	// cluster can render is rendered here as well, and what is held is shown.
	Preview bool
}

// Outcome is what one cluster should run.
type Outcome struct {
	// Desired goes into the deployment plan.
	Desired deployment.Desired
	// Encoded must be stored before the deployment is written; nil where an
	// earlier render is still good, or Keep has taken it.
	Encoded *content.Encoded
	// Result is the render; nil where it was remembered, failed or is the
	// agent's to make and no preview was asked for, or where what it led to was
	// given to Keep.
	Result *render.Result
	// Rendered is true where no earlier render was still good, and Warnings are
	// what the render has to say.
	Rendered bool
	Warnings []fault.Note
	// OnCluster is why the agent renders although nobody asked for that.
	OnCluster string
	// Preview is why the Result, or the lack of one, is not what the cluster
	// will make, and Held why nothing is deployed; where a preview was asked for.
	Preview, Held string
	// Err is why this cluster is held back.
	Err error
}

// Run takes a bundle through all stages. The outcomes are in the order of the
// clusters that the bundle targets.
func (s *Stages) Run(ctx context.Context, in Input) ([]Outcome, error) {
	matcher, err := target.NewMatcher(in.Bundle)
	if err != nil {
		return nil, err
	}
	if _, err := downstream.OfBundle(&in.Bundle.Spec); err != nil {
		return nil, err
	}
	clusters := make([]target.Cluster, len(in.Clusters))
	offers := make(map[string]render.Capabilities, len(in.Clusters))
	for i := range in.Clusters {
		clusters[i] = in.Clusters[i].Cluster
		offers[clusters[i].ID()] = in.Clusters[i].Capabilities
	}
	assignments := matcher.Assign(clusters)
	run := newRun(s, &in, assignments)
	outcomes := make([]Outcome, len(assignments))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(concurrency)
	for i := range assignments {
		group.Go(func() error {
			a := &assignments[i]
			outcomes[i] = run.one(ctx, a, offers[a.Cluster.ID()])
			return ctx.Err()
		})
	}
	return outcomes, group.Wait()
}

// run is the state of one Run.
type run struct {
	stages *Stages
	in     *Input
	// crowded is why the agents should render, if so.
	crowded string
	// files are the bundle's files as agents get them, encoded once.
	files func() (content.Files, error)
	// encoder packs what the clusters get.
	encoder *content.Encoder

	mu      sync.Mutex
	encoded *cache.LRU[*encoding]
}

// encodingRoom is how many bytes of renders are held with their encodings: at
// least one of any size that a renderer may return.
const encodingRoom = 80 << 20

func newRun(s *Stages, in *Input, assignments []target.Assignment) *run {
	r := &run{stages: s, in: in, encoder: content.NewEncoder(s.Key), encoded: cache.New[*encoding](encodingRoom)}
	r.files = sync.OnceValues(func() (content.Files, error) { return content.EncodeSharedFiles(s.Key, in.Files) })
	r.crowded = r.crowd(assignments)
	return r
}

// encoding is an encoding that is made once.
type encoding struct {
	of    *render.Result // keeps its address from standing for another
	once  sync.Once
	value content.Encoded
	err   error
}

func (r *run) one(ctx context.Context, a *target.Assignment, offers render.Capabilities) Outcome {
	out := Outcome{Desired: deployment.Desired{
		Namespace: a.Cluster.DeploymentNamespace, Cluster: a.Cluster.Name, ClusterNamespace: a.Cluster.Namespace,
		Paused: a.Paused,
	}}
	// An assignment's own error names the cluster already.
	out.Err = a.Err
	if out.Err == nil {
		out.Desired.Options = *a.Options
		err := r.fill(ctx, &out, a.Cluster, offers)
		if err == nil {
			err = r.keep(ctx, &out)
		}
		if err != nil {
			out.Err = a.Cluster.Wrong(err)
		}
	}
	out.Desired.Held = out.Err != nil
	return out
}

// keep gives what was made to who stores it.
func (r *run) keep(ctx context.Context, out *Outcome) error {
	if r.in.Keep == nil {
		return nil
	}
	err := r.in.Keep(ctx, out.Desired.Namespace, out.Encoded)
	out.Encoded, out.Result = nil, nil
	return err
}

// fill renders for one cluster, or finds that nothing changed.
func (r *run) fill(ctx context.Context, out *Outcome, cluster *target.Cluster, offers render.Capabilities) error {
	desired := &out.Desired
	if out.Held = effect.Holds(&desired.Options); out.Held != "" && !r.in.Preview {
		return fault.Stall(ReasonHeld, errors.New(out.Held))
	}
	if offers.KubeVersion == "" {
		return fault.Wait(notReported, ReasonNotReported, errors.New(
			"its agent has not told yet what the cluster offers: is it running, and does it reach the hub?"))
	}
	at, err := placeOf(&desired.Options, r.crowded)
	if err != nil {
		return err
	}
	req := r.request(&desired.Options, offers)
	if req.Copies, err = downstream.All(&desired.Options, r.in.Copies); err != nil {
		return err
	}
	if desired.Options.TemplateManifests {
		req.Cluster = cluster.Templating()
	}
	if err := req.Seal(); err != nil {
		return err
	}
	if ok, err := r.remembered(&req, desired, at); ok || err != nil {
		return err
	}
	if at.agent {
		if r.in.Preview {
			r.preview(ctx, out, req, at)
		}
		return r.fillSource(out, req, nil, at)
	}
	return r.fillRendered(ctx, out, req)
}

// fillRendered renders here, or finds that only the cluster can.
func (r *run) fillRendered(ctx context.Context, out *Outcome, req render.Request) error {
	result, err := r.stages.Renderer.Render(ctx, req)
	if err != nil {
		return err
	}
	out.Result, out.Rendered, out.Warnings = result, true, result.Warnings
	if result.NeedsCluster != "" {
		if req.Options.Render == fleet.RenderHub {
			return needsCluster(result.NeedsCluster)
		}
		out.Preview = result.NeedsCluster
		return r.fillSource(out, req, result.Asked, place{why: result.NeedsCluster})
	}
	encoded, err := r.encode(fmt.Sprintf("%p", result), result, result.Size(), func() (content.Encoded, error) {
		return r.encoder.Objects(result.Objects)
	})
	if err != nil {
		return err
	}
	return out.fill(encoded, &req, result.Asked, place{})
}

// fillSource leaves the render to the agent.
func (r *run) fillSource(out *Outcome, req render.Request, asked []string, at place) error {
	encoded, err := r.source(req)
	if err != nil {
		return err
	}
	out.OnCluster = at.why
	out.Desired.Content.Source = true
	return out.fill(encoded, &req, asked, at)
}

// fill writes what is to be stored, and what it was made from.
func (out *Outcome) fill(encoded *content.Encoded, req *render.Request, asked []string, at place) (err error) {
	desired := &out.Desired
	out.Encoded, out.Rendered = encoded, true
	desired.Content.Digest, desired.Content.Name = encoded.Root.Digest, encoded.Root.Name
	desired.RenderAsked = asked
	desired.RenderInput, err = inputOf(req, asked, at)
	return err
}

// remembered tells whether the last render is still good, and takes it then.
func (r *run) remembered(req *render.Request, desired *deployment.Desired, at place) (bool, error) {
	last, ok := r.in.Remembered[desired.Namespace]
	if !ok || last.Input == "" || last.Content.Source && req.Options.Render == fleet.RenderHub {
		return false, nil
	}
	input, err := inputOf(req, last.Asked, at)
	if err != nil || input != last.Input {
		return false, err
	}
	desired.Content, desired.RenderInput, desired.RenderAsked = last.Content, last.Input, last.Asked
	return true, nil
}

// encode makes the encoding of what key stands for, once for all clusters that
// ask for it at about one time.
func (r *run) encode(key string, of *render.Result, size int, make func() (content.Encoded, error)) (*content.Encoded, error) {
	r.mu.Lock()
	e, ok := r.encoded.Get(key)
	if !ok {
		e = &encoding{of: of}
		r.encoded.Put(key, e, size)
	}
	r.mu.Unlock()
	e.once.Do(func() { e.value, e.err = make() })
	return &e.value, e.err
}

// Warnings collects what the renders have to say to the bundle's author, each
// once. rendered is false where every render was remembered, so that what an
// earlier one said still stands.
func Warnings(outcomes []Outcome) (all []string, rendered bool) {
	said := map[string]bool{}
	say := func(w string) {
		if !said[w] {
			said[w] = true
			all = append(all, w)
		}
	}
	for i := range outcomes {
		o := &outcomes[i]
		rendered = rendered || o.Rendered
		if o.OnCluster != "" {
			say("each cluster renders this for itself: " + o.OnCluster)
		}
		for _, w := range o.Warnings {
			say(w.String())
		}
	}
	return all, rendered
}
