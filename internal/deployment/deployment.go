// Package deployment decides what is to be written about a bundle's
// deployments: given what every cluster should run and the deployments that
// exist, it returns what to create, to update, to mark for removal and to
// release. It is pure; the caller acts on the plan.
package deployment

import (
	"encoding/json"
	"maps"
	"reflect"
	"sort"

	"github.com/flotilla-sh/flotilla/internal/digest"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Desired is what one cluster should run of a bundle.
type Desired struct {
	// Namespace is the cluster's namespace, where its deployments live.
	Namespace string
	// Cluster is the Cluster's name and ClusterNamespace where it lives.
	Cluster, ClusterNamespace string
	// Paused stages the new content without promoting it.
	Paused bool
	// Options are merged and templated; only what the agent needs of them is
	// put into the deployment.
	Options fleet.BundleDeploymentOptions
	// Content is the root of the rendered manifest.
	Content fleet.ContentRef
	// RenderInput is the digest of what was rendered, and RenderAsked the
	// questions that the render asked of the cluster.
	RenderInput string
	RenderAsked []string
	// Held keeps an existing deployment as it is and creates none: this
	// cluster has an error, and its neighbours go on.
	Held bool
}

// Input is everything that the decision depends on.
type Input struct {
	// Bundle and BundleNamespace name the bundle.
	Bundle, BundleNamespace string
	// Labels of the bundle go to its deployments.
	Labels map[string]string
	// DependsOn is the bundle's.
	DependsOn []fleet.BundleRef
	// Desired has one entry for each cluster that the bundle targets.
	Desired []Desired
	// Existing are the bundle's deployments.
	Existing []fleet.BundleDeployment
	// Known are the namespaces of clusters that exist. A deployment whose
	// cluster is not known is left alone: a lost record removes nothing.
	Known map[string]bool
	// RemovalReason is what a removal mark says.
	RemovalReason string
}

// Plan is what to write. The objects are copies that may be changed.
type Plan struct {
	Create []*fleet.BundleDeployment
	Update []Update
	// Release are deployments whose removal the agent has reported, or that
	// somebody deleted: their finalizer is dropped and they are deleted.
	Release []*fleet.BundleDeployment
	// Removing are the clusters whose agent has not yet removed what it should.
	Removing []string
	// Orphans counts deployments whose cluster is not known.
	Orphans int
	// Unreported tells that some cluster has yet to say that it runs what it
	// should once the plan is carried out.
	Unreported bool
}

// Update is a change of one deployment. New has no status, which is the agent's.
type Update struct {
	Old, New *fleet.BundleDeployment
}

// changeable copies what may be changed of a deployment.
func changeable(d *fleet.BundleDeployment) *fleet.BundleDeployment {
	out := &fleet.BundleDeployment{TypeMeta: d.TypeMeta}
	d.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	d.Spec.DeepCopyInto(&out.Spec)
	return out
}

// Empty tells whether there is nothing to write.
func (p Plan) Empty() bool {
	return len(p.Create)+len(p.Update)+len(p.Release) == 0
}

// Decide compares what should be with what is.
func Decide(in Input) Plan {
	var plan Plan
	existing := make(map[string]*fleet.BundleDeployment, len(in.Existing))
	for i := range in.Existing {
		existing[in.Existing[i].Namespace] = &in.Existing[i]
	}
	for _, want := range in.Desired {
		have := existing[want.Namespace]
		delete(existing, want.Namespace)
		plan.decideWanted(in, want, have)
	}
	for _, have := range sortedValues(existing) {
		plan.decideUnwanted(in, have)
	}
	return plan
}

func (p *Plan) decideWanted(in Input, want Desired, have *fleet.BundleDeployment) {
	switch {
	case have == nil && want.Held:
	case have == nil:
		p.Create = append(p.Create, newDeployment(in, want))
		p.Unreported = true
	case removed(have), !have.DeletionTimestamp.IsZero() && have.Spec.Removal == nil:
		// Released first; the next look creates it anew. A deletion without
		// a mark takes nothing off the cluster.
		p.Release = append(p.Release, have.DeepCopy())
	case want.Held:
	default:
		next := changeable(have)
		fill(next, in, want)
		p.update(have, next)
		p.Unreported = p.Unreported || next.Spec.StagedDeploymentID != "" ||
			next.Spec.DeploymentID != have.Status.AppliedDeploymentID
	}
}

func (p *Plan) decideUnwanted(in Input, have *fleet.BundleDeployment) {
	switch {
	case removed(have):
		p.Release = append(p.Release, have.DeepCopy())
	case !in.Known[have.Namespace] && !have.DeletionTimestamp.IsZero():
		p.Release = append(p.Release, have.DeepCopy())
	case !in.Known[have.Namespace]:
		p.Orphans++
	case have.Spec.Removal != nil:
		p.Removing = append(p.Removing, have.Labels[fleet.ClusterLabel])
	default:
		p.Removing = append(p.Removing, have.Labels[fleet.ClusterLabel])
		next := changeable(have)
		next.Spec.Removal = &fleet.Removal{Reason: in.RemovalReason}
		p.update(have, next)
	}
}

func (p *Plan) update(have, next *fleet.BundleDeployment) {
	if !reflect.DeepEqual(have.Spec, next.Spec) || !sameLabels(have.Labels, next.Labels) {
		p.Update = append(p.Update, Update{Old: have, New: next})
	}
}

// removed tells whether the agent has done what a removal mark asked for. What
// it said of an earlier mark, which was withdrawn since, does not count.
func removed(d *fleet.BundleDeployment) bool {
	return d.Spec.Removal != nil && d.Status.RemovalState != nil && d.Status.RemovalState.Done &&
		d.Status.ObservedGeneration == d.Generation
}

// sameLabels compares labels but for the commit: a commit that changes nothing
// else is no reason to write.
func sameLabels(a, b map[string]string) bool {
	a, b = maps.Clone(a), maps.Clone(b)
	delete(a, fleet.CommitLabel)
	delete(b, fleet.CommitLabel)
	return maps.Equal(a, b)
}

func newDeployment(in Input, want Desired) *fleet.BundleDeployment {
	d := &fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{
		Name:       in.Bundle,
		Namespace:  want.Namespace,
		Finalizers: []string{fleet.Finalizer},
	}}
	fill(d, in, want)
	return d
}

// fill writes what is wanted into a deployment.
func fill(d *fleet.BundleDeployment, in Input, want Desired) {
	d.Labels = labels(in, want)
	options := forAgent(want.Options)
	id := ID(want.Content.Digest, options)
	d.Spec.Removal = nil
	d.Spec.Paused = want.Paused
	d.Spec.DependsOn = in.DependsOn
	d.Spec.StagedDeploymentID, d.Spec.StagedOptions = "", fleet.BundleDeploymentOptions{}
	if want.Paused && d.Spec.DeploymentID != id {
		d.Spec.StagedDeploymentID, d.Spec.StagedOptions = id, options
		return
	}
	d.Spec.DeploymentID, d.Spec.Options = id, options
	d.Spec.CorrectDrift = options.CorrectDrift
	d.Spec.Content, d.Spec.OCIContents = &want.Content, want.Content.Registry != ""
	d.Spec.RenderInput, d.Spec.RenderAsked = want.RenderInput, want.RenderAsked
}

func labels(in Input, want Desired) map[string]string {
	out := make(map[string]string, len(in.Labels)+5)
	maps.Copy(out, in.Labels)
	out[fleet.BundleLabel] = in.Bundle
	out[fleet.BundleNamespaceLabel] = in.BundleNamespace
	out[fleet.ClusterLabel] = want.Cluster
	out[fleet.ClusterNamespaceLabel] = want.ClusterNamespace
	out[fleet.ManagedLabel] = "true"
	return out
}

// ID returns the deployment ID: the manifest's digest and the digest of those
// options whose change must be applied again. Drift settings are none.
func ID(contentDigest string, options fleet.BundleDeploymentOptions) string {
	options.Diff = nil
	options.CorrectDrift = nil
	raw, err := json.Marshal(options)
	if err != nil {
		// The options came out of JSON.
		panic("deployment options are not JSON: " + err.Error())
	}
	return "s-" + contentDigest[:min(61, len(contentDigest))] + ":" + digest.Of(raw)
}

// forAgent keeps those options that an agent acts on. What the render used is
// in the manifest already.
func forAgent(o fleet.BundleDeploymentOptions) fleet.BundleDeploymentOptions {
	o.Kustomize, o.YAML, o.Render, o.Overwrites = nil, nil, "", nil
	o.Helm = helmForAgent(o.Helm)
	return o
}

func helmForAgent(h *fleet.HelmOptions) *fleet.HelmOptions {
	if h == nil {
		return nil
	}
	lean := fleet.HelmOptions{
		ReleaseName:    h.ReleaseName,
		TakeOwnership:  h.TakeOwnership,
		Force:          h.Force,
		Atomic:         h.Atomic,
		TimeoutSeconds: h.TimeoutSeconds,
		WaitForJobs:    h.WaitForJobs,
		ValuesFrom:     h.ValuesFrom,
	}
	if reflect.DeepEqual(lean, fleet.HelmOptions{}) {
		return nil
	}
	return &lean
}

func sortedValues(m map[string]*fleet.BundleDeployment) []*fleet.BundleDeployment {
	out := make([]*fleet.BundleDeployment, 0, len(m))
	for _, d := range m {
		out = append(out, d)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Namespace < out[j].Namespace })
	return out
}
