package hubtest_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-sh/flotilla/internal/hub"
	"github.com/flotilla-sh/flotilla/internal/names"
	"github.com/flotilla-sh/flotilla/internal/render"
	"github.com/flotilla-sh/flotilla/internal/source"
	"github.com/flotilla-sh/flotilla/internal/source/git"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// stuck never ends with what is called slow: neither a fetch nor a render.
type stuck struct {
	git.Source
	render.Renderer
	fetches, renders atomic.Int32
}

func (s *stuck) Read(ctx context.Context, r git.Remote, commit string, read func(source.Tree)) error {
	if strings.Contains(r.URL, "slow") {
		s.fetches.Add(1)
		<-ctx.Done()
		return ctx.Err()
	}
	return s.Source.Read(ctx, r, commit, read)
}

func (s *stuck) Render(ctx context.Context, req render.Request) (*render.Result, error) {
	if strings.Contains(req.Bundle, "slow") {
		s.renders.Add(1)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.Renderer.Render(ctx, req)
}

// TestANamespaceWaitsForNoOther has a tenant with more repositories that do not
// answer, and templates that do not end, than the hub has workers.
func TestANamespaceWaitsForNoOther(t *testing.T) {
	w := newWhole(t)
	s := &stuck{Renderer: render.New()}
	w.configure = func(o *hub.Options) {
		clones, err := git.NewCache(filepath.Join(w.TempDir(), "git"))
		w.must(err)
		s.Source = clones
		o.Git, o.Renderer = s, s
	}
	push, url := w.serveGit()
	push("slow", map[string]string{"a.yaml": configMap("one")[0].Content})
	push("app", map[string]string{"a.yaml": configMap("one")[0].Content})
	w.start()
	w.clusters(1)
	const many = 12
	for i := range many {
		w.create(&fleet.GitRepo{ObjectMeta: w.meta(fmt.Sprintf("slow-%d", i)), Spec: fleet.GitRepoSpec{Repo: url + "/slow.git", Branch: "main"}})
		w.bundle(fmt.Sprintf("slow-by-hand-%d", i))
	}
	w.eventually("be busy", func() bool { return s.fetches.Load() >= 4 && s.renders.Load() >= 4 })

	other := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: w.namespace + "-other", Name: name}
	}
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: other("").Namespace}})
	w.create(&fleet.Cluster{ObjectMeta: other("c")})
	space := names.ClusterNamespace(other("").Namespace, "c")
	report := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: fleet.CapabilitiesName}}
	w.eventually("register", func() bool { return w.exists(report) })
	w.edit(report, func() { report.Data = map[string]string{fleet.CapabilitiesVersionKey: "v1.36.3"} })
	w.create(&fleet.GitRepo{ObjectMeta: other("app"), Spec: fleet.GitRepoSpec{
		Repo: url + "/app.git", Branch: "main", Targets: []fleet.GitTarget{{ClusterName: "c"}},
	}})
	w.eventually("deploy what another has", func() bool {
		return w.exists(&fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: "app"}})
	})
}
