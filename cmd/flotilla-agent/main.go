// Command flotilla-agent runs on a cluster, or beside it, and makes it what the
// hub wants it to be.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	"github.com/flotilla-sh/flotilla/cmd/internal/start"
	"github.com/flotilla-sh/flotilla/internal/agent"
	"github.com/flotilla-sh/flotilla/internal/agent/beside"
	"github.com/flotilla-sh/flotilla/internal/render/worker"
)

// program is the name of this program.
const program = "flotilla-agent"

// systemNamespace is where agents run unless told otherwise.
const systemNamespace = "cattle-fleet-system"

// renderIdle is how long the process that renders stays when it has nothing to
// do: its memory is worth more than its start.
const renderIdle = 30 * time.Second

func main() { start.Main(command()) }

// flags are the command line.
type flags struct {
	kubeconfig, hubKubeconfig string
	namespace                 string
	identity                  string
	heartbeat, settle, poll   time.Duration
	metricsAddress            string
	renderDeadline            time.Duration
	renderMemory              int64
	besideRancherFleet        bool
	logLevel                  string
}

func command() *cobra.Command {
	f := flags{renderMemory: 384 << 20}
	cmd := &cobra.Command{
		Use:   program,
		Short: "Make this cluster what the hub wants it to be",
		RunE:  func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), f) },
	}
	cmd.Flags().StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig of the agent's own cluster; empty means that it runs in it")
	cmd.Flags().StringVar(&f.hubKubeconfig, "hub-kubeconfig", "", "kubeconfig of the hub; the namespace of its context is the cluster's")
	cmd.Flags().StringVar(&f.namespace, "namespace", systemNamespace, "namespace on the agent's own cluster where it keeps its state")
	cmd.Flags().BoolVar(&f.besideRancherFleet, "beside-rancher-fleet", false, "apply although an agent of Rancher Fleet is active on this cluster")
	cmd.Flags().DurationVar(&f.heartbeat, "heartbeat", time.Minute, "time between two heartbeats to the hub")
	cmd.Flags().DurationVar(&f.poll, "poll-interval", 0, "time between two looks at the hub, for links that must be idle in between; 0 keeps a watch open")
	cmd.Flags().StringVar(&f.identity, "identity", "", "name of this agent among those of its cluster, of which one acts; empty means the name of the host")
	cmd.Flags().DurationVar(&f.settle, "settle", 3*time.Second, "how long what leaves a bundle stays at least, so that another bundle can take it over")
	cmd.Flags().DurationVar(&f.renderDeadline, "render-deadline", time.Minute, "how long one render of what only this cluster can render may take")
	cmd.Flags().Var(start.Size(&f.renderMemory, 1), "render-memory", "how many `bytes` such a render may use")
	cmd.Flags().StringVar(&f.metricsAddress, "metrics-bind-address", "", "address to serve metrics and health on; empty means none")
	cmd.Flags().StringVar(&f.logLevel, "log-level", "info", "debug, info, warn or error")
	cobra.CheckErr(cmd.MarkFlagRequired("hub-kubeconfig"))
	return cmd
}

func run(ctx context.Context, f flags) error {
	log, err := start.Logger(f.logLevel)
	if err != nil {
		return err
	}
	ctx = logr.NewContext(ctx, log)
	options, err := options(f)
	if err != nil {
		return err
	}
	pool, err := start.Renderers(worker.Options{Size: 1, MemoryLimit: f.renderMemory, Deadline: f.renderDeadline, Idle: renderIdle})
	if err != nil {
		return err
	}
	defer pool.Close()
	options.Renderer, options.Metrics = pool, prometheus.DefaultRegisterer
	if f.metricsAddress != "" {
		go serve(ctx, f.metricsAddress)
	}
	return agent.Run(ctx, options)
}

func options(f flags) (agent.Options, error) {
	if f.heartbeat < time.Second {
		return agent.Options{}, fmt.Errorf("--heartbeat %s: must be at least 1s", f.heartbeat)
	}
	if f.poll != 0 && f.poll < time.Second {
		return agent.Options{}, fmt.Errorf("--poll-interval %s: must be at least 1s, or 0 for a watch", f.poll)
	}
	if f.settle < 0 {
		return agent.Options{}, fmt.Errorf("--settle %s: must not be negative", f.settle)
	}
	spoke, err := start.Connect(f.kubeconfig, program)
	if err != nil {
		return agent.Options{}, err
	}
	hub, namespace, err := hubConfig(f.hubKubeconfig)
	if err != nil {
		return agent.Options{}, err
	}
	identity, err := os.Hostname()
	if f.identity != "" {
		identity, err = f.identity, nil
	}
	if err != nil {
		return agent.Options{}, fmt.Errorf("read the name of this host: %w; or set --identity", err)
	}
	var neighbours []string
	if !f.besideRancherFleet {
		neighbours = beside.Namespaces()
	}
	return agent.Options{
		RancherFleet: neighbours,
		Spoke:        spoke, Hub: hub, HubNamespace: namespace, Namespace: f.namespace,
		Identity: identity, Process: process(), Former: former(identity),
		Heartbeat: f.heartbeat, Poll: f.poll, Settle: f.settle, Clock: clock.RealClock{},
	}, nil
}

// hubConfig reads the way to the hub, and the cluster's namespace on it.
func hubConfig(file string) (*rest.Config, string, error) {
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: file}, &clientcmd.ConfigOverrides{})
	config, err := loaded.ClientConfig()
	if err != nil {
		return nil, "", fmt.Errorf("--hub-kubeconfig %q: %w", file, err)
	}
	namespace, explicit, err := loaded.Namespace()
	if err != nil {
		return nil, "", fmt.Errorf("--hub-kubeconfig %q: %w", file, err)
	}
	if !explicit && namespace == "default" {
		return nil, "", fmt.Errorf("--hub-kubeconfig %q: its current context names no namespace; it must be the cluster's namespace on the hub", file)
	}
	return config, namespace, nil
}

// serve answers for metrics and health until ctx ends.
func serve(ctx context.Context, address string) {
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.Handler())
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	server := &http.Server{Addr: address, Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	if err := server.ListenAndServe(); err != nil && !errors.Is(err, http.ErrServerClosed) {
		logr.FromContextOrDiscard(ctx).Error(err, "metrics are not served", "address", address)
	}
}
