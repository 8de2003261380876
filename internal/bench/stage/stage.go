// Package stage sets up what a measurement needs: a hub of the lab with its
// API server and etcd as processes of their own, a fleet of simulated agents,
// and bundles to deploy to it.
package stage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/bench/meter"
	"github.com/flotilla-sh/flotilla/internal/bench/sim"
	"github.com/flotilla-sh/flotilla/internal/hub"
	"github.com/flotilla-sh/flotilla/internal/lab"
)

// userAgent is what the bench calls itself in its own requests.
const userAgent = "flotilla-bench"

// Options say what a stage is made of.
type Options struct {
	// Bin is the directory of the programs.
	Bin string
	// Heartbeat is that of the agents.
	Heartbeat time.Duration
	// Spokes are real clusters with real agents.
	Spokes []lab.Spoke
	// HubArgs and AgentArgs are given to the programs.
	HubArgs, AgentArgs []string
	// Profiles is a directory for CPU profiles; empty makes none.
	Profiles string
	// Log tells what is being done.
	Log func(format string, args ...any)
}

// Stage is a lab that is measured.
type Stage struct {
	Lab *lab.Lab
	// Hub is the API server of the hub, as the bench uses it.
	Hub client.WithWatch
	// Config reaches it; Kube is its built-in API.
	Config *rest.Config
	Kube   *kubernetes.Clientset
	// Meter measures the hub.
	Meter *meter.Meter

	options Options
	dir     string
	kinds   *sim.Kinds
	version *version.Info
	fleet   *sim.Fleet
	members []sim.Member
	// hubProfiles is where the hub serves profiles of itself.
	hubProfiles string
}

// Start brings a lab up, with a fresh etcd.
func Start(ctx context.Context, o Options) (*Stage, error) {
	dir, err := os.MkdirTemp("", "flotilla-bench-")
	if err != nil {
		return nil, err
	}
	s := &Stage{options: o, dir: dir}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func (s *Stage) start(ctx context.Context) error {
	policy := filepath.Join(s.dir, "audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(meter.Policy), 0o600); err != nil {
		return err
	}
	serverArgs, hubArgs, err := s.profileArgs()
	if err != nil {
		return err
	}
	s.Lab, err = lab.Start(ctx, lab.Options{
		Dir: filepath.Join(s.dir, "lab"), Programs: lab.ProgramsIn(s.options.Bin), Products: true,
		Spokes: s.options.Spokes, APIServerArgs: append(meter.ServerArgs(policy), serverArgs...),
		HubArgs: append(hubArgs, s.options.HubArgs...), AgentArgs: s.options.AgentArgs,
	})
	if err != nil {
		return err
	}
	if err := s.connect(ctx); err != nil {
		return err
	}
	s.options.Log("a lab runs: Kubernetes %s", s.version.GitVersion)
	return nil
}

// connect makes the clients and the meter.
func (s *Stage) connect(ctx context.Context) error {
	var err error
	cluster := s.Lab.Status().Hub
	if s.Config, err = clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig); err != nil {
		return err
	}
	s.Config.QPS, s.Config.UserAgent = -1, userAgent
	scheme, err := hub.Scheme()
	if err != nil {
		return err
	}
	if s.Hub, err = client.NewWithWatch(s.Config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	if s.Kube, err = kubernetes.NewForConfig(s.Config); err != nil {
		return err
	}
	found, err := discovery.NewDiscoveryClientForConfig(s.Config)
	if err != nil {
		return err
	}
	if s.version, err = found.ServerVersion(); err != nil {
		return err
	}
	if s.kinds, err = sim.NewKinds(ctx, found); err != nil {
		return err
	}
	s.Meter = meter.New(cluster, s.Kube.RESTClient(), s.processes())
	return nil
}

// processes returns the hub's processes by name.
func (s *Stage) processes() map[string]int {
	names := map[string]string{
		"flotilla-hub": meter.Hub, "hub-kube-apiserver": meter.APIServer, "hub-etcd": meter.Etcd,
		"hub-kube-controller-manager": meter.Manager,
	}
	roots := map[string]int{meter.Simulator: os.Getpid()}
	for _, unit := range s.Lab.Status().Units {
		for _, p := range unit.Processes {
			if name, ok := names[p.Name]; ok {
				roots[name] = p.PID
			}
		}
	}
	return roots
}

// HubPID is the process id of flotilla-hub.
func (s *Stage) HubPID() int { return s.Meter.Roots[meter.Hub] }

// StopHub stops flotilla-hub.
func (s *Stage) StopHub() error {
	delete(s.Meter.Roots, meter.Hub)
	return s.Lab.StopUnit(lab.HubController)
}

// StartHub starts flotilla-hub again.
func (s *Stage) StartHub(ctx context.Context) error {
	err := s.Lab.StartUnit(ctx, lab.HubController)
	s.Meter.Roots = s.processes()
	return err
}

// Stop ends everything and removes it.
func (s *Stage) Stop() error {
	s.StopAgents()
	var errs []error
	if s.Lab != nil {
		if s.options.Profiles != "" {
			// A lab that ends kills the render processes before they have
			// written their profiles.
			errs = append(errs, s.StopHub())
		}
		errs = append(errs, s.Lab.Stop())
	}
	return errors.Join(append(errs, os.RemoveAll(s.dir))...)
}

// patience bounds every wait.
const patience = 8 * time.Minute

// within gives a step its limit.
func within(ctx context.Context, what string) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, patience, fmt.Errorf("%s: not within %s", what, patience))
}
