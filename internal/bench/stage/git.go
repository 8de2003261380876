package stage

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/lab/gitserver"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// Repository is a repository on the lab's Git server and the GitRepo that
// follows it.
type Repository struct {
	Name string
	// Clusters selects by label; nil is all.
	Clusters map[string]string

	stage *Stage
	head  string
}

// Repository returns a repository that has no commit yet.
func (s *Stage) Repository(name string, clusters map[string]string) *Repository {
	return &Repository{Name: name, Clusters: clusters, stage: s}
}

// Commit writes files.
func (r *Repository) Commit(ctx context.Context, files map[string]string) error {
	server, err := gitserver.New(r.stage.Lab.Status().Git.Root)
	if err != nil {
		return err
	}
	r.head, err = server.Commit(ctx, r.Name, gitserver.Commit{Message: "change", Files: files})
	return err
}

// Follow makes the GitRepo.
func (r *Repository) Follow(ctx context.Context) error {
	return r.stage.Hub.Create(ctx, &fleet.GitRepo{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: r.Name},
		Spec: fleet.GitRepoSpec{
			Repo: r.stage.Lab.Status().Git.URL + "/" + r.Name + ".git", Branch: "main",
			PollingInterval: &metav1.Duration{Duration: time.Second},
			Targets:         []fleet.GitTarget{{Name: "all", ClusterSelector: &metav1.LabelSelector{MatchLabels: r.Clusters}}},
		},
	})
}

// AwaitReady waits until the newest commit runs on n clusters.
func (r *Repository) AwaitReady(ctx context.Context, n int) (time.Time, error) {
	ctx, cancel := within(ctx, fmt.Sprintf("commit of %s ready on %d clusters", r.Name, n))
	defer cancel()
	for {
		repo := &fleet.GitRepo{}
		if err := r.stage.Hub.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: r.Name}, repo); err != nil {
			return time.Time{}, err
		}
		sum := repo.Status.Summary
		if repo.Status.Commit == r.head && sum.Ready == n && sum.DesiredReady == n && fleet.IsConditionTrue(repo.Status.Conditions, fleet.ConditionReady) {
			return time.Now(), nil
		}
		select {
		case <-ctx.Done():
			ready := fleet.FindCondition(repo.Status.Conditions, fleet.ConditionReady)
			return time.Time{}, fmt.Errorf("%w: commit %.7s (want %.7s), %d of %d ready: %+v", context.Cause(ctx), repo.Status.Commit, r.head, sum.Ready, sum.DesiredReady, ready)
		case <-time.After(200 * time.Millisecond):
		}
	}
}
