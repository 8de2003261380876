package stage

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/bench/meter"
	"github.com/flotilla-sh/flotilla/internal/bench/sim"
	"github.com/flotilla-sh/flotilla/internal/names"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

const (
	// Namespace is where clusters and bundles are.
	Namespace = fleet.DefaultNamespace
	// GroupLabel numbers the groups of GroupSize clusters.
	GroupLabel = "group"
	GroupSize  = 10
	// parallel bounds the requests of the bench while it sets up.
	parallel = 16
	// IndexLabel numbers the clusters of the fleet.
	IndexLabel = "index"
	// calm is how long nothing must happen for a fleet to be at rest.
	calm = 1500 * time.Millisecond
	// tokenLife is longer than any measurement.
	tokenLife = 24 * 60 * 60
)

// Register makes n clusters, waits until the hub has taken them in, and gives
// each an agent that is not started yet.
func (s *Stage) Register(ctx context.Context, n int) error {
	if err := s.Join(ctx, n); err != nil {
		return err
	}
	return s.enlist(ctx, n)
}

// Join makes n clusters and waits until the hub has taken them in.
func (s *Stage) Join(ctx context.Context, n int) error {
	ctx, cancel := within(ctx, fmt.Sprintf("register %d clusters", n))
	defer cancel()
	s.options.Log("registering %d clusters", n)
	var group errgroup.Group
	group.SetLimit(parallel)
	for i := range n {
		group.Go(func() error {
			return s.Hub.Create(ctx, &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{
				Namespace: Namespace, Name: clusterName(i),
				Labels: map[string]string{"env": "prod", IndexLabel: fmt.Sprint(i), GroupLabel: fmt.Sprint(i / GroupSize)},
			}})
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("create clusters: %w", err)
	}
	return s.registered(ctx, n)
}

func clusterName(i int) string { return fmt.Sprintf("cluster-%04d", i) }

// registered waits until all clusters have a namespace.
func (s *Stage) registered(ctx context.Context, n int) error {
	for {
		list := &fleet.ClusterList{}
		if err := s.Hub.List(ctx, list, client.InNamespace(Namespace), client.HasLabels{IndexLabel}); err != nil {
			return err
		}
		done := 0
		for i := range list.Items {
			if list.Items[i].Status.Namespace != "" {
				done++
			}
		}
		if done == n {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (%d of %d)", context.Cause(ctx), done, n)
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// enlist asks for the token of each agent.
func (s *Stage) enlist(ctx context.Context, n int) error {
	s.members = make([]sim.Member, n)
	var group errgroup.Group
	group.SetLimit(parallel)
	for i := range n {
		group.Go(func() error {
			ns := names.ClusterNamespace(Namespace, clusterName(i))
			request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(tokenLife))}}
			answer, err := s.Kube.CoreV1().ServiceAccounts(ns).CreateToken(ctx, fleet.AgentName, request, metav1.CreateOptions{})
			if err != nil {
				return fmt.Errorf("token of the agent in %s: %w", ns, err)
			}
			s.members[i] = sim.Member{Namespace: ns, Token: answer.Status.Token}
			return nil
		})
	}
	return group.Wait()
}

// StartAgents starts the agents of all clusters and waits until the hub has
// heard from each.
func (s *Stage) StartAgents(ctx context.Context, spread time.Duration) error {
	ctx, cancel := within(ctx, fmt.Sprintf("start %d agents", len(s.members)))
	defer cancel()
	s.options.Log("starting %d agents", len(s.members))
	s.fleet = s.NewFleet()
	if err := s.fleet.Start(context.WithoutCancel(ctx), s.members, spread); err != nil {
		return err
	}
	return s.online(ctx)
}

// NewFleet returns agents that are not started yet.
func (s *Stage) NewFleet() *sim.Fleet {
	return sim.NewFleet(sim.Options{
		Hub: s.Config, Heartbeat: s.options.Heartbeat, Kinds: s.kinds, Version: s.version,
	})
}

// Fetched are the bytes of content that the agents have read.
func (s *Stage) Fetched() int64 { return s.fleet.Fetched() }

// Members are the clusters of the fleet.
func (s *Stage) Members() []sim.Member { return s.members }

// StopAgents ends the simulated agents.
func (s *Stage) StopAgents() {
	if s.fleet != nil {
		s.fleet.Stop()
		s.fleet = nil
	}
}

// online waits until all clusters are known to be online and to have reported.
func (s *Stage) online(ctx context.Context) error {
	for {
		list := &fleet.ClusterList{}
		if err := s.Hub.List(ctx, list, client.InNamespace(Namespace)); err != nil {
			return err
		}
		n := 0
		for i := range list.Items {
			c := &list.Items[i].Status
			if fleet.IsConditionTrue(c.Conditions, fleet.ConditionOnline) && !c.Agent.LastSeen.IsZero() {
				n++
			}
		}
		if n == len(list.Items) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (%d of %d are online)", context.Cause(ctx), n, len(list.Items))
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// Rest waits until hub and agents have nothing more to do.
func (s *Stage) Rest(ctx context.Context) error {
	ctx, cancel := within(ctx, "come to rest")
	defer cancel()
	return s.Meter.Quiet(ctx, calm, meter.Request.Work)
}
