package soak_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing/fstest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-sh/flotilla/internal/digest"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// repo is a GitRepo and what is in its repository: a directory for each of its
// bundles. The first of them stays: what holds nothing removes nothing.
type repo struct {
	name string
	// paths are listed where listed is true; all of the repository counts else.
	listed bool
	// broken adds a directory of which nobody can make a bundle, bare takes all
	// directories away, and lost is the directory that a mistake took away.
	// While there is one of them, nothing may be removed.
	broken, bare bool
	lost         string
	away         bool
	commits      int
}

func (r *repo) url() string { return "https://git.test/" + r.name }

// of are the bundles of a repository, sorted by name.
func (w *world) of(r *repo) []*bundle {
	var out []*bundle
	for _, name := range slices.Sorted(maps.Keys(w.model.bundles)) {
		if b := w.model.bundles[name]; b.repo == r {
			out = append(out, b)
		}
	}
	return out
}

// push commits what a repository is to have.
func (w *world) push(r *repo, force bool) {
	files := fstest.MapFS{"README.md": {Data: []byte("apps")}}
	for _, b := range w.of(r) {
		if r.bare || r.lost == b.name {
			continue
		}
		for name, text := range w.files(b) {
			files[b.name+"/"+name] = &fstest.MapFile{Data: []byte(text)}
		}
	}
	if r.broken {
		files["broken/fleet.yaml"] = &fstest.MapFile{Data: []byte("targets: [")}
	}
	r.commits++
	commit := digest.Of([]byte(fmt.Sprint(r.name, r.commits)))[:40]
	w.git.push(r.url(), commit, files, force)
	w.declare(r)
}

// files are those of a bundle's directory.
func (w *world) files(b *bundle) map[string]string {
	spec, out := w.model.spec(b), map[string]string{}
	for _, resource := range spec.Resources {
		out[resource.Name] = resource.Content
	}
	options := map[string]any{"name": b.name, "paused": spec.Paused, "overrideTargets": spec.Targets}
	if spec.CorrectDrift != nil {
		options["correctDrift"] = spec.CorrectDrift
	}
	if spec.Render != "" {
		options["render"] = spec.Render
	}
	text, err := yaml.Marshal(options)
	w.must(err)
	out["fleet.yaml"] = string(text)
	return out
}

// declare makes the GitRepo be as it is wanted.
func (w *world) declare(r *repo) {
	ctx := context.Background()
	w.must(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		obj := &fleet.GitRepo{ObjectMeta: w.meta(r.name)}
		err := w.direct.hub.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		obj.Spec.Repo, obj.Spec.Branch, obj.Spec.Paths = r.url(), "main", nil
		obj.Spec.PollingInterval = &metav1.Duration{Duration: w.pace.poll}
		for _, b := range w.of(r) {
			if r.listed {
				obj.Spec.Paths = append(obj.Spec.Paths, b.name)
			}
		}
		if r.listed && r.broken {
			obj.Spec.Paths = append(obj.Spec.Paths, "broken")
		}
		if apierrors.IsNotFound(err) {
			return w.direct.hub.Create(ctx, obj)
		}
		if err != nil {
			return err
		}
		return w.direct.hub.Update(ctx, obj)
	}))
}

// fromGit lets a new bundle come from a repository, in some worlds.
func (w *world) fromGit(b *bundle) {
	if !w.gitops || w.luck.IntN(3) == 0 {
		return
	}
	if len(w.repos) == 0 || w.luck.IntN(4) == 0 {
		w.repos = append(w.repos, &repo{name: fmt.Sprintf("r%d", len(w.repos)+1), listed: w.luck.IntN(2) == 0})
		b.stays = true
	}
	b.repo = w.repos[w.luck.IntN(len(w.repos))]
	if b.stays {
		b.repo = w.repos[len(w.repos)-1]
	}
}

// gitStep is something that happens to a repository.
func (w *world) gitStep() string {
	if len(w.repos) == 0 || w.luck.IntN(2) == 0 {
		return ""
	}
	r := w.repos[w.luck.IntN(len(w.repos))]
	switch w.luck.IntN(6) {
	case 0:
		r.away = !r.away
		w.git.away(r.url(), r.away)
		return fmt.Sprintf("%s is away: %v", r.name, r.away)
	case 1:
		r.broken = !r.broken
	case 2:
		r.bare = !r.bare
	case 3:
		if all := w.of(r); r.lost == "" && r.listed && len(all) > 0 {
			r.lost = all[w.luck.IntN(len(all))].name
		} else {
			r.lost = ""
		}
	case 4:
		w.push(r, true)
		return "force push to " + r.String()
	case 5:
		if all := w.of(r); len(all) > 0 {
			w.renew(all[w.luck.IntN(len(all))])
			w.watch.note(w.model)
		}
	}
	w.push(r, false)
	return r.String()
}

// mendRepos ends what keeps repositories from being understood.
func (w *world) mendRepos() {
	for _, r := range w.repos {
		r.broken, r.bare, r.lost, r.away = false, false, "", false
		w.git.away(r.url(), false)
		w.push(r, false)
		w.trace("tidy: %s", r)
	}
}

// String describes a repository.
func (r *repo) String() string {
	return fmt.Sprintf("%s at commit %d, listed: %v, broken: %v, bare: %v, lost: %q", r.name, r.commits, r.listed, r.broken, r.bare, r.lost)
}

// wrongRepos compares what the hub says of GitRepos.
func (w *world) wrongRepos() []string {
	list := &fleet.GitRepoList{}
	if err := w.direct.hub.List(context.Background(), list, client.InNamespace(w.model.names.fleet)); err != nil {
		return []string{err.Error()}
	}
	got, want := map[string]string{}, map[string]string{}
	for _, r := range w.repos {
		want[r.name] = fmt.Sprintf("at %s, Ready True, Stalled False ()", w.git.repos[r.url()].head)
	}
	for i := range list.Items {
		r := &list.Items[i]
		got[r.Name] = fmt.Sprintf("at %s, Ready %s, Stalled %s", r.Status.Commit,
			statusOf(fleet.FindCondition(r.Status.Conditions, fleet.ConditionReady)), statusOf(fleet.FindCondition(r.Status.Conditions, fleet.ConditionStalled)))
	}
	return differences("GitRepo ", got, want)
}
