// Package render renders on the agent what needs its cluster: values that are
// kept there, lookups, and output that no two renders make alike. The render
// itself is the hub's, in a child process; what it looks up is read here, and
// the render repeated with the answers.
package render

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/flotilla-sh/flotilla/internal/apply"
	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/render"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// maxRounds bounds how often a render is repeated because it looks up more: a
// chart that looks up what depends on another lookup needs one more round.
const maxRounds = 16

// ReasonLookups says that a render never ends to look things up.
const ReasonLookups = "TooManyLookups"

// Version asks the cluster for its version.
type Version interface {
	ServerVersion() (*version.Info, error)
}

// Renderer renders for the cluster that it runs on.
type Renderer struct {
	// Engine renders.
	Engine render.Renderer
	// Version tells the cluster's.
	Version Version
}

// Result is what a render on the cluster made.
type Result struct {
	Objects []render.Object
	// Secret is true where the data of a Secret went into the render: no value
	// of the objects may then be shown.
	Secret bool
}

// Render renders a request of the hub with the values of this cluster. It reads
// through c, as the account that c acts as.
func (r *Renderer) Render(ctx context.Context, c *apply.Client, req render.Request, v Values) (*Result, error) {
	offers, unread, err := r.capabilities(ctx, c)
	if err != nil {
		return nil, err
	}
	req.Capabilities, req.OnCluster = offers, true
	values, err := v.merged(req.Copies)
	if err != nil {
		return nil, err
	}
	req.Options = withValues(req.Options, values)
	out := &Result{Secret: v.Secret}
	if err := r.rounds(ctx, c, req, unread, out); err != nil {
		if out.Secret {
			err = discreet(err)
		}
		return nil, err
	}
	return out, nil
}

// rounds renders until everything is looked up that is asked for. Nothing is
// rendered on the word that the cluster lacks what is unread.
func (r *Renderer) rounds(ctx context.Context, c *apply.Client, req render.Request, unread []string, out *Result) error {
	for range maxRounds {
		result, err := r.Engine.Render(ctx, req)
		if err != nil {
			return err
		}
		if err := doubtful(result.Asked, unread, &req); err != nil {
			return err
		}
		if len(result.Lookups) == 0 {
			out.Objects = result.Objects
			return nil
		}
		for _, lookup := range result.Lookups {
			out.Secret = out.Secret || lookup.Kind == "Secret"
			answer, err := lookFor(ctx, c, lookup, req.Copies)
			if err != nil {
				return err
			}
			req.Lookups = append(req.Lookups, answer)
		}
	}
	return fault.Stall(ReasonLookups, fmt.Errorf(
		"the chart looked things up on the cluster %d times in a row, each time depending on the last: it probably looks up a random name", maxRounds))
}

// doubtful is the error of a render that asked for kinds that are not known to
// be there and that the cluster cannot tell of at the moment.
func doubtful(asked, unread []string, req *render.Request) error {
	if len(unread) == 0 {
		return nil
	}
	for _, api := range render.Lacking(asked, req) {
		for _, gv := range unread {
			if api == gv || strings.HasPrefix(api, gv+"/") {
				return fmt.Errorf("the chart asks whether this cluster has %s, and the API server of %s does not answer at the moment", api, gv)
			}
		}
	}
	return nil
}

// capabilities are what the cluster offers, from the kinds that are known, and
// the groups and versions whose kinds cannot be read.
func (r *Renderer) capabilities(ctx context.Context, c *apply.Client) (render.Capabilities, []string, error) {
	info, err := r.Version.ServerVersion()
	if err != nil {
		return render.Capabilities{}, nil, fmt.Errorf("read the version of this cluster: %w", err)
	}
	found, err := c.Kinds.List(ctx)
	if err != nil {
		return render.Capabilities{}, nil, err
	}
	return render.Capabilities{KubeVersion: info.GitVersion, APIs: render.ParseAPIs(strings.Join(found.Kinds, "\n"))}, found.Unread, nil
}

// withValues returns options with values on top of theirs.
func withValues(o fleet.BundleDeploymentOptions, values map[string]any) fleet.BundleDeploymentOptions {
	if len(values) == 0 {
		return o
	}
	helm := fleet.HelmOptions{}
	if o.Helm != nil {
		helm = *o.Helm
	}
	merged := fleet.GenericMap{Data: values}
	if helm.Values != nil {
		merged.Data = fleet.MergeValues(helm.Values.Data, values)
	}
	helm.Values = &merged
	o.Helm = &helm
	return o
}

// lookFor makes one lookup. What comes with the bundle is as good as there.
func lookFor(ctx context.Context, c *apply.Client, l render.Lookup, copies []render.Object) (render.Answer, error) {
	if l.APIVersion == "v1" && l.Name != "" {
		if obj, ok := copyOf(copies, l.Kind, l.Namespace, l.Name); ok {
			found, err := obj.MarshalJSON()
			return render.Answer{Lookup: l, Found: found}, err
		}
	}
	return look(ctx, c, l)
}

// look makes one lookup. What the cluster refuses is an answer: the template
// says then where it stands.
func look(ctx context.Context, c *apply.Client, l render.Lookup) (render.Answer, error) {
	answer := render.Answer{Lookup: l}
	gv, err := schema.ParseGroupVersion(l.APIVersion)
	if err != nil {
		answer.Refused = fmt.Sprintf("lookup: %q is no API version", l.APIVersion)
		return answer, nil
	}
	kind, err := c.Kinds.Lookup(ctx, gv.WithKind(l.Kind))
	if noKind, ok := errors.AsType[*apply.NoKindError](err); ok {
		answer.Refused = "lookup: " + noKind.Error()
		return answer, nil
	}
	if err != nil {
		return answer, err
	}
	return answer, read(ctx, c, l, kind, &answer)
}

func read(ctx context.Context, c *apply.Client, l render.Lookup, kind apply.Kind, answer *render.Answer) error {
	at := c.Objects.Resource(kind.Resource).Namespace("")
	if kind.Namespaced {
		at = c.Objects.Resource(kind.Resource).Namespace(l.Namespace)
	}
	var err error
	if l.Name == "" {
		list, failed := at.List(ctx, metav1.ListOptions{})
		if err = failed; err == nil {
			answer.Found, err = list.MarshalJSON()
		}
	} else {
		obj, failed := at.Get(ctx, l.Name, metav1.GetOptions{})
		if err = failed; err == nil {
			answer.Found, err = obj.MarshalJSON()
		}
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsForbidden(err), apierrors.IsBadRequest(err), apierrors.IsInvalid(err):
		answer.Refused = fmt.Sprintf("lookup of %s: %s", l, err)
		return nil
	case err != nil:
		return fmt.Errorf("look up %s: %w", l, err)
	}
	return nil
}
