// Package render turns the files of a bundle, its options and what is known of
// a cluster into the ordered list of objects that the cluster should have. The
// same code runs on the hub, in the agent and in the command line.
package render

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/render/helm"
	"github.com/flotilla-sh/flotilla/internal/source"
	"github.com/flotilla-sh/flotilla/internal/templating"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// Request is everything that a render depends on. It is plain data, so that it
// can be sent to a child process and digested.
type Request struct {
	// Files are the files of the bundle, sorted by path.
	Files []source.File `json:"files"`
	// SourceDigest identifies Files, so that many requests for one source
	// need not digest it again; where it is empty it is computed.
	SourceDigest string `json:"sourceDigest,omitempty"`
	// Bundle is the bundle's name; it is the default release name.
	Bundle string `json:"bundle"`
	// Commit is the source commit, for the version of synthesized charts.
	Commit string `json:"commit,omitempty"`
	// Options are merged and templated for the cluster.
	Options fleet.BundleDeploymentOptions `json:"options"`
	// Capabilities is what the cluster offers.
	Capabilities Capabilities `json:"capabilities"`
	// Copies are objects that the cluster gets besides what is rendered.
	Copies []Object `json:"copies,omitempty"`
	// Cluster is what templates know of the cluster; it must be there where
	// Options.TemplateManifests is set, and is looked at nowhere else.
	Cluster *templating.Cluster `json:"cluster,omitempty"`
	// OnCluster is true where the agent of the cluster renders: lookups are
	// then answered from Lookups, and a result that would differ in the next
	// render is as good as any.
	OnCluster bool `json:"onCluster,omitempty"`
	// Lookups are the answers that are known so far. A render that makes
	// another one says so in its result, and is repeated with the answer: a
	// child process has no way to a cluster.
	Lookups []Answer `json:"lookups,omitempty"`

	base string // what baseDigest returns; set by Seal
}

// Seal computes once what the digests of a request have in common. Nothing but
// what is known of the cluster may be changed afterwards.
func (r *Request) Seal() error {
	var err error
	r.base = ""
	r.base, err = baseDigest(r)
	return err
}

// Lookup is a call of the template function lookup.
type Lookup = helm.Lookup

// Answer is what a cluster says to a lookup.
type Answer = helm.Answer

// Capabilities is what a cluster offers to a render.
type Capabilities struct {
	// KubeVersion is the server's version, such as v1.36.3.
	KubeVersion string `json:"kubeVersion"`
	// APIs are the kinds that the cluster serves.
	APIs []API `json:"apis,omitempty"`
}

// Equal tells whether two clusters offer the same, in the same order.
func (c Capabilities) Equal(other Capabilities) bool {
	return c.KubeVersion == other.KubeVersion && slices.Equal(c.APIs, other.APIs)
}

// API is one kind that a cluster serves.
type API struct {
	// GroupVersion is "v1" or "apps/v1".
	GroupVersion string `json:"gv"`
	// Kind is the kind's name; empty where only the group and version are known.
	Kind string `json:"kind"`
	// Namespaced tells whether objects of the kind live in a namespace.
	Namespaced bool `json:"namespaced,omitempty"`
}

// Object is one rendered object.
type Object struct {
	// JSON is the object as canonical JSON (sorted keys).
	JSON json.RawMessage `json:"json"`
	// APIVersion, Kind, Namespace and Name identify the object; they are what
	// JSON says.
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	// Source is the file that it came from, as file or file:line.
	Source string `json:"source,omitempty"`

	hook string // the events of a Helm hook, as its manifest names them
}

// Place returns the file that the object came from, and its line or 0.
func (o *Object) Place() (file string, line int) {
	colon := strings.LastIndexByte(o.Source, ':')
	if n, err := strconv.Atoi(o.Source[colon+1:]); err == nil && colon > 0 {
		return o.Source[:colon], n
	}
	return o.Source, 0
}

// Result is the outcome of a render that succeeded.
type Result struct {
	// Objects are in apply order: stable, and equal for equal requests. Helm
	// hooks are among them, but for those that never run, such as tests.
	Objects []Object `json:"objects"`
	// Asked are the questions that the render asked of the capabilities,
	// sorted; see Answers. Clusters that answer them alike get the same result.
	Asked []string `json:"asked,omitempty"`
	// NeedsCluster is why only an agent on the cluster can render this
	// (a lookup that was really made, or output that differs between two
	// renders of one input); empty where the hub can. Objects are then what a
	// cluster without any object would get, as "helm template" shows it: to
	// look at, not to apply.
	NeedsCluster string `json:"needsCluster,omitempty"`
	// Lookups are what a render on the cluster looked up and had no answer to.
	// Where there are any, nothing else of the result is of use.
	Lookups []Lookup `json:"lookups,omitempty"`
	// UnknownScope are the kinds, as group/version/Kind, of objects that name
	// no namespace and of which nobody knows whether they live in one. Who
	// applies them gives them their namespace.
	UnknownScope []string `json:"unknownScope,omitempty"`
	// Warnings are for the bundle's author.
	Warnings []fault.Note `json:"warnings,omitempty"`
}

// Size is about how many bytes of memory the result occupies.
func (r *Result) Size() int {
	total := 0
	for i := range r.Objects {
		total += len(r.Objects[i].JSON) + len(r.Objects[i].Source) + 128
	}
	return total
}

// Renderer renders.
type Renderer interface {
	Render(ctx context.Context, req Request) (*Result, error)
}
