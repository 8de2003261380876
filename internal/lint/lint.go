// Package lint finds all that is wrong with the bundles of a directory tree,
// without any cluster. It takes them through the same stages as the hub, for
// example clusters that are made after the targets of the bundles.
package lint

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"

	"github.com/flotilla-sh/flotilla/internal/bundle"
	"github.com/flotilla-sh/flotilla/internal/charts"
	"github.com/flotilla-sh/flotilla/internal/downstream"
	"github.com/flotilla-sh/flotilla/internal/effect"
	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/pipeline"
	"github.com/flotilla-sh/flotilla/internal/render"
	"github.com/flotilla-sh/flotilla/internal/source"
	"github.com/flotilla-sh/flotilla/internal/target"
	"github.com/flotilla-sh/flotilla/internal/templating"
)

// room is how many bytes of results are remembered, so that clusters that a
// bundle treats alike cost one render.
const room = 64 << 20

// Input is what to look at.
type Input struct {
	// Tree is the repository, and Scan what to look for in it.
	Tree source.Tree
	Scan bundle.Input
	// Clusters are looked at beside the examples, with what they offer, and
	// ClustersFile is where they come from.
	Clusters     []pipeline.Cluster
	ClustersFile string
	// Labels are those of every example.
	Labels map[string]string
	// Offers is what every example offers to renders.
	Offers render.Capabilities
	// Renderer renders.
	Renderer render.Renderer
	// Bring fetches the charts that drafts need, and writes what cannot be had
	// into their errors; nil leaves such bundles out.
	Bring func(context.Context, source.Tree, []bundle.Draft) error
	// Progress, where set, is called after each bundle.
	Progress func(done, all int)
}

// Run looks at every bundle. Its error is why it could not go on; what is wrong
// with the bundles is in the report.
func Run(ctx context.Context, in Input) (*Report, error) {
	drafts, scanErr := bundle.Scan(in.Tree, in.Scan)
	if in.Bring != nil {
		if err := in.Bring(ctx, in.Tree, drafts); err != nil {
			return nil, err
		}
	}
	l := &linter{
		Input: &in, clusters: clustersOf(drafts, in.Clusters, in.Labels), found: newFindings(), owners: map[owned]owner{},
		stages: pipeline.Alone(render.NewMemo(in.Renderer, room)),
		kinds:  newKinds(),
	}
	for _, note := range fault.Notes(scanErr) {
		l.found.add(Problem{File: note.File, Line: note.Line, Severity: Error, Message: note.Message})
	}
	for _, message := range sharing(in.Clusters) {
		l.found.add(Problem{File: in.ClustersFile, Severity: Error, Message: message})
	}
	for i := range drafts {
		if err := l.bundle(ctx, &drafts[i]); err != nil {
			return nil, err
		}
		if in.Progress != nil {
			in.Progress(i+1, len(drafts))
		}
	}
	return l.found.report(len(drafts)), nil
}

// linter is one run.
type linter struct {
	*Input
	stages   *pipeline.Stages
	clusters []target.Cluster
	found    *findings
	owners   map[owned]owner
	kinds    *kinds
}

// bundle takes one bundle through the stages.
func (l *linter) bundle(ctx context.Context, draft *bundle.Draft) error {
	about := &subject{draft: draft, config: cmp.Or(draft.Config, draft.Path)}
	for _, warning := range draft.Warnings {
		l.found.add(about.problem(Warning, warning))
	}
	if draft.Err != nil {
		for _, note := range fault.Notes(draft.Err) {
			l.found.add(about.problem(Error, note))
		}
		return nil
	}
	if fields := effect.OfBundle(&draft.Spec); len(fields) > 0 {
		l.found.add(about.problem(Warning, fault.Note{Message: effect.Condition(fields).Message}))
	}
	if l.Bring == nil && charts.Needed(draft) {
		l.found.add(about.problem(Warning, fault.Note{Message: "it needs charts from elsewhere, which the hub fetches: what they render to is not looked at here"}))
		return nil
	}
	outcomes, err := l.outcomes(ctx, about)
	if err != nil {
		return err
	}
	for i := range outcomes {
		l.outcome(about, &outcomes[i], len(outcomes))
	}
	return nil
}

// outcomes renders for all clusters. What a template reads of a cluster that an
// example lacks is made up.
func (l *linter) outcomes(ctx context.Context, about *subject) ([]pipeline.Outcome, error) {
	draft := about.draft
	clusters := copies(l.clusters)
	const attempts = 8
	for attempt := 1; ; attempt++ {
		in := pipeline.InputOf(draft, namespace, l.Tree.Commit)
		for i := range clusters {
			offers := l.Offers
			if i < len(l.Clusters) {
				offers = l.Clusters[i].Capabilities
			}
			in.Clusters = append(in.Clusters, pipeline.Cluster{Cluster: clusters[i], Capabilities: offers})
		}
		outcomes, err := l.stages.Run(ctx, in)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			for _, note := range fault.Notes(err) {
				l.found.add(about.problem(Error, note))
			}
			return nil, nil
		}
		if attempt == attempts || !makeUp(clusters, outcomes) {
			return outcomes, nil
		}
	}
}

// outcome looks at what one cluster would get.
func (l *linter) outcome(about *subject, out *pipeline.Outcome, all int) {
	report := func(make func(Severity, fault.Note) Problem, severity Severity, notes ...fault.Note) {
		for _, note := range notes {
			p := make(severity, note)
			p.clusters, p.of = []string{out.Desired.Cluster}, all
			l.found.add(p)
		}
	}
	switch values := templating.Errors(out.Err); {
	case len(values) > 0:
		for _, e := range values {
			notes := fault.Notes(about.draft.Placed(l.Tree.FS, e))
			if key := l.lacks(out, e); key == "" {
				report(about.problem, Error, notes...)
			} else if len(l.Clusters) == 0 {
				report(about.problem, Warning, fault.Note{File: notes[0].File, Line: notes[0].Line, Message: advice(key)})
			}
		}
	case l.lacks(out, out.Err) != "":
		if len(l.Clusters) == 0 {
			report(about.rendered, Warning, fault.Note{Message: advice(l.lacks(out, out.Err))})
		}
	case out.Err != nil:
		report(about.rendered, Error, fault.Notes(out.Err)...)
	}
	if out.Result == nil {
		return
	}
	report(about.rendered, Warning, out.Result.Warnings...)
	for i := range out.Result.Objects {
		object := &out.Result.Objects[i]
		report(about.rendered, Error, l.kinds.check(object, draftFile(about.draft))...)
		if note, ok := l.claim(about, out.Desired.Cluster, object); !ok {
			report(about.rendered, Error, note)
		}
	}
}

// lacks returns the template value that an example lacks, and that cannot be
// made up; a cluster that was given has all that it has.
func (l *linter) lacks(out *pipeline.Outcome, err error) string {
	given := slices.ContainsFunc(l.Clusters, func(c pipeline.Cluster) bool {
		return c.Name == out.Desired.Cluster && c.Namespace == out.Desired.ClusterNamespace
	})
	for _, missing := range templating.Missing(err) {
		if missing.Root == clusterValues && !given {
			return missing.Key
		}
	}
	return ""
}

func advice(key string) string {
	return fmt.Sprintf("templates read %q of spec.templateValues of a Cluster: give clusters that have it with --clusters, and they are looked at with them", key)
}

// owned is an object on a cluster.
type owned struct{ cluster, group, kind, namespace, name string }

// owner is who has it.
type owner struct{ bundle, source string }

// placeOf returns where an object of a bundle comes from.
func placeOf(about *subject, object *render.Object) string {
	if object.Source == downstream.Origin {
		return about.config
	}
	return path.Join(about.draft.Path, object.Source)
}

// claim takes an object for a bundle. Two bundles cannot have one.
func (l *linter) claim(about *subject, cluster string, object *render.Object) (fault.Note, bool) {
	if isHook(object) {
		return fault.Note{}, true
	}
	key := owned{cluster, groupOf(object.APIVersion), object.Kind, object.Namespace, object.Name}
	first, taken := l.owners[key]
	if !taken || first.bundle == about.draft.Name {
		l.owners[key] = owner{about.draft.Name, placeOf(about, object)}
		return fault.Note{}, true
	}
	file, line := object.Place()
	if object.Source == downstream.Origin {
		file = ""
	}
	return fault.Note{File: file, Line: line, Message: fmt.Sprintf(
		"%s %s is also in the bundle %s (%s), and a cluster takes an object from one bundle alone: remove it from one of them", object.Kind, object.Name, first.bundle, first.source)}, false
}
