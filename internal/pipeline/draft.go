package pipeline

import (
	"github.com/flotilla-sh/flotilla/internal/bundle"
	"github.com/flotilla-sh/flotilla/internal/content"
	"github.com/flotilla-sh/flotilla/internal/downstream"
	"github.com/flotilla-sh/flotilla/internal/render"
	"github.com/flotilla-sh/flotilla/internal/target"
)

// InputOf takes a draft as a Bundle of a namespace, where no hub is asked: what
// would be copied from there has stand-ins.
func InputOf(draft *bundle.Draft, namespace, commit string, clusters ...Cluster) Input {
	copied, _ := downstream.OfBundle(&draft.Spec) // Run says what is wrong with it
	return Input{
		Bundle: target.Bundle{Namespace: namespace, Name: draft.Name, Labels: draft.Labels, Spec: draft.Spec},
		Files:  draft.Files, SourceDigest: draft.SourceDigest, Commit: commit,
		Copies: downstream.StandIns(copied), Clusters: clusters,
	}
}

// Alone is the line of stages for work that nobody stores or remembers.
func Alone(r render.Renderer) *Stages {
	return &Stages{Renderer: r, Key: content.Key("not kept by anybody")}
}
