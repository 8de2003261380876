package rows

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/bench/meter"
	"github.com/flotilla-sh/flotilla/internal/bench/report"
	"github.com/flotilla-sh/flotilla/internal/bench/sim"
	"github.com/flotilla-sh/flotilla/internal/bench/stage"
	"github.com/flotilla-sh/flotilla/internal/content"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

const (
	// largeObjects is the number of objects of a large bundle, 5 kB each.
	largeObjects = 1000
	// compared is the size of payload that the architecture speaks of.
	compared = 675_000
	// fetchers is how many payloads are fetched at once.
	fetchers = 64
)

var chunks = Row{
	Name: "chunks", N: 10,
	Title: "a change of one line in a bundle of 5 MB (1,000 objects) on N clusters",
	measure: func(ctx context.Context, r *Run) error {
		s, _, err := r.fleet(ctx, r.N)
		if err != nil {
			return err
		}
		defer func() { _ = s.Stop() }()
		if err := r.chunks(ctx, s, "text", text); err != nil {
			return err
		}
		return r.chunks(ctx, s, "noise", noise)
	},
}

// chunks measures a bundle of some filling.
func (r *Run) chunks(ctx context.Context, s *stage.Stage, name string, fill func(string, int) string) error {
	repo := s.Repository(name, nil)
	if err := repo.Commit(ctx, large(largeObjects, fill, "")); err != nil {
		return err
	}
	if err := repo.Follow(ctx); err != nil {
		return err
	}
	before := s.Fetched()
	if _, err := repo.AwaitReady(ctx, r.N); err != nil {
		return err
	}
	if err := s.Rest(ctx); err != nil {
		return err
	}
	first := s.Fetched()
	took, use, err := s.Cost(ctx, func(ctx context.Context) (time.Time, error) {
		if err := repo.Commit(ctx, large(largeObjects, fill, " changed")); err != nil {
			return time.Time{}, err
		}
		return repo.AwaitReady(ctx, r.N)
	})
	if err != nil {
		return err
	}
	r.phase(name, use)
	n := float64(r.N)
	for _, f := range []report.Figure{
		{Name: "first fetch by an agent", Unit: "kB", Value: float64(first-before) / n / 1000, Exact: true},
		{Name: "fetched by an agent after the change", Unit: "kB", Value: float64(s.Fetched()-first) / n / 1000,
			Goal: "≤ 16, or the object", Peer: "all of it", Exact: true},
		{Name: "commit → all Ready, polling each second", Unit: "s", Value: took.Seconds()},
		{Name: "etcd log of the change, all in all", Unit: "kB", Value: use.Etcd.LogBytes / 1000},
	} {
		f.Name = name + ": " + f.Name
		r.record(f)
	}
	return nil
}

var fetch = Row{
	Name: "fetch", N: 1000,
	Title:   "N agents fetch a bundle of 5 MB",
	measure: measureFetch,
}

func measureFetch(ctx context.Context, r *Run) error {
	s, _, err := r.fleet(ctx, r.N)
	if err != nil {
		return err
	}
	defer func() { _ = s.Stop() }()
	repo := s.Repository("large", map[string]string{stage.IndexLabel: "0"})
	if err := repo.Commit(ctx, large(largeObjects, noise, "")); err != nil {
		return err
	}
	if err := repo.Follow(ctx); err != nil {
		return err
	}
	if _, err := repo.AwaitReady(ctx, 1); err != nil {
		return err
	}
	fleetOf := s.NewFleet()
	refs, size, err := payloads(ctx, s, fleetOf)
	if err != nil {
		return err
	}
	r.Log("%d agents fetch %d payloads, %d kB", r.N, len(refs), size/1000)
	took, use, err := s.Cost(ctx, func(ctx context.Context) (time.Time, error) {
		err := fetchAll(ctx, fleetOf, s.Members(), refs)
		return time.Now(), err
	})
	if err != nil {
		return err
	}
	r.phase("fetch", use)
	per := float64(r.N) / 1000 * float64(size) / compared
	r.record(report.Figure{
		Name: "API server CPU for 1,000 agents and 675 kB", Unit: "s", Value: use.CPU[meter.APIServer].Seconds() / per,
		Goal: "≤ 2", Floor: 1.5,
	})
	r.record(report.Figure{Name: "payloads of one agent", Value: float64(len(refs)), Exact: true})
	r.record(report.Figure{Name: "bytes of one agent", Unit: "kB", Value: float64(size) / 1000, Exact: true})
	r.record(report.Figure{Name: "all agents", Unit: "s", Value: took.Seconds()})
	return nil
}

// payloads are what the agent of the one deployment has fetched.
func payloads(ctx context.Context, s *stage.Stage, f *sim.Fleet) ([]content.Ref, int, error) {
	list := &fleet.BundleDeploymentList{}
	if err := s.Hub.List(ctx, list, client.MatchingLabels{fleet.RepoLabel: "large"}); err != nil {
		return nil, 0, err
	}
	if len(list.Items) != 1 || list.Items[0].Spec.Content == nil {
		return nil, 0, fmt.Errorf("there are %d deployments of the large bundle, want 1 with a content", len(list.Items))
	}
	getter, err := f.Getter(s.Members()[0]) // any agent may read by name
	if err != nil {
		return nil, 0, err
	}
	root := list.Items[0].Spec.Content
	asked := &recorder{Getter: getter}
	_, _, err = content.FetchObjects(ctx, asked, keeper{}, content.Ref{Digest: root.Digest, Name: root.Name})
	return asked.refs, int(f.Fetched()), err
}

// recorder notes what an agent asks for.
type recorder struct {
	content.Getter
	refs []content.Ref
}

// Get notes and asks.
func (r *recorder) Get(ctx context.Context, ref content.Ref) (content.Parcel, error) {
	r.refs = append(r.refs, ref)
	return r.Getter.Get(ctx, ref)
}

// keeper keeps payloads in memory, as an agent that starts with nothing.
type keeper map[string][]byte

// Kept returns a payload that was taken.
func (k keeper) Kept(ref content.Ref) ([]byte, bool) {
	data, ok := k[ref.ID()]
	return data, ok
}

// Take keeps a payload.
func (k keeper) Take(ref content.Ref, data []byte) { k[ref.ID()] = data }

// fetchAll lets every agent fetch every payload.
func fetchAll(ctx context.Context, f *sim.Fleet, members []sim.Member, refs []content.Ref) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(fetchers)
	for _, m := range members {
		getter, err := f.Getter(m)
		if err != nil {
			return err
		}
		group.Go(func() error {
			for _, ref := range refs {
				if _, err := getter.Get(ctx, ref); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}
