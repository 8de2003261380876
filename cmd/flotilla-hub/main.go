// Command flotilla-hub runs the controllers of the management cluster.
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/rand"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/flotilla-sh/flotilla/cmd/internal/start"
	"github.com/flotilla-sh/flotilla/internal/bundle"
	"github.com/flotilla-sh/flotilla/internal/hub"
	"github.com/flotilla-sh/flotilla/internal/hub/memory"
	"github.com/flotilla-sh/flotilla/internal/pipeline"
	"github.com/flotilla-sh/flotilla/internal/render/worker"
	"github.com/flotilla-sh/flotilla/internal/source/chart"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// program is the name of this program.
const program = "flotilla-hub"

// gcPercent makes the hub collect garbage earlier than Go does by itself: most
// of its peak memory in a large rollout was garbage. GOGC overrides it.
const gcPercent = 50

func main() { start.Main(command()) }

// flags are the command line.
type flags struct {
	kubeconfig, logLevel string
	mirrors              []string
	hub                  hub.Options
	renderers            worker.Options
}

func command() *cobra.Command {
	cmd, _ := commandLine()
	return cmd
}

// commandLine is the command with what its flags are read into.
func commandLine() (*cobra.Command, *flags) {
	f := &flags{hub: hub.Options{
		GitCacheSize: 1 << 30, MaxBundlesSize: bundle.DefaultMaxBytes, MaxRenders: pipeline.DefaultMaxRenders, Charts: chart.DefaultLimits(),
	}}
	cmd := &cobra.Command{
		Use:     program,
		Short:   "Run the controllers of the management cluster",
		Example: "  flotilla-hub --kubeconfig ~/.kube/hub",
		RunE:    func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), f) },
	}
	set := cmd.Flags()
	set.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig of the hub's API server (default: the pod's own)")
	set.StringVar(&f.hub.Namespace, "namespace", fleet.SystemNamespace, "namespace for what is the hub's own")
	set.StringVar(&f.hub.CacheDir, "cache-dir", filepath.Join(os.TempDir(), "flotilla-hub"), "directory for clones; it may be lost at any time")
	set.Var(start.Size(&f.hub.GitCacheSize, 0), "git-cache-size", "how many `bytes` of clones stay in --cache-dir; the least recently used go first; 0 is no bound")
	set.Var(start.Size(&f.hub.MaxBundlesSize, 0), "git-max-bundles-size", "how many `bytes` the files of all bundles of one GitRepo may have together, which are in memory at once; 0 is no bound")
	set.StringVar(&f.hub.MetricsAddress, "metrics-bind-address", ":8080", "address of the Prometheus metrics; 0 turns them off")
	set.StringVar(&f.hub.PprofAddress, "pprof-bind-address", "", "address of profiles of this program, such as localhost:6060; none where empty")
	set.StringVar(&f.logLevel, "log-level", "info", "debug, info, warn or error")
	set.StringVar(&f.hub.RegistrySecret, "content-registry-secret", "", "Secret in --namespace with an OCI registry for the content of bundles that name none (default: content stays on the API server)")
	set.StringVar(&f.hub.Webhooks.Address, "webhook-bind-address", "", "address for webhooks of Git servers, such as :8090; none where empty")
	set.StringVar(&f.hub.Webhooks.CertFile, "webhook-cert-file", "", "certificate, in PEM, to serve webhooks over TLS with; read again when it changes")
	set.StringVar(&f.hub.Webhooks.KeyFile, "webhook-key-file", "", "key of --webhook-cert-file")
	set.DurationVar(&f.renderers.Deadline, "render-deadline", time.Minute, "how long one render may take before it is ended")
	set.Var(start.Size(&f.renderers.MemoryLimit, 1), "render-memory", "how many `bytes` one render may use (default: what the memory limit of this program leaves for it, at most 1Gi)")
	set.Var(start.Count(&f.renderers.Size), "renderers", "how many renders may run at once (default: one for each CPU, as far as the memory limit of this program goes)")
	set.StringVar(&f.renderers.Profiles, "render-profiles", "", "directory where each process that renders writes a CPU profile when it ends; none where empty")
	set.Var(start.Count(&f.hub.MaxRenders), "max-renders", "how many different renders of one bundle the hub makes before its clusters make them")
	set.Var(start.Size(&f.hub.Charts.Size, 1), "chart-max-size", "how many `bytes` a chart from elsewhere may have, packed and unpacked")
	set.Var(start.Count(&f.hub.Charts.Files), "chart-max-files", "how many files a chart from elsewhere may have")
	set.StringArrayVar(&f.mirrors, "mirror", nil, "`upstream=mirror`: a beginning of URLs of charts and Git repositories, and what to ask in place of it, such as https://charts.example.org=https://mirror.internal/charts; may be repeated")
	return cmd, f
}

func run(ctx context.Context, f *flags) error {
	log, err := start.Logger(f.logLevel)
	if err != nil {
		return err
	}
	ctrl.SetLogger(log)
	if f.hub.Mirrors, err = chart.ParseMirrors(f.mirrors); err != nil {
		return fmt.Errorf("--mirror: %w", err)
	}
	if f.renderers.Deadline <= 0 {
		return fmt.Errorf("--render-deadline %s: must be more than 0", f.renderers.Deadline)
	}
	if err := divide(f); err != nil {
		return err
	}
	identity, lock, err := identify(f.hub.CacheDir)
	if err != nil {
		return err
	}
	defer lock.Close()
	f.hub.Identity = identity
	if f.hub.Config, err = start.Connect(f.kubeconfig, program); err != nil {
		return err
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	pool, err := start.Renderers(f.renderers)
	if err != nil {
		return err
	}
	defer pool.Close()
	f.hub.Renderer = pool
	return hub.Run(ctx, f.hub)
}

// divide gives the hub and its renders their shares of the memory that there is,
// and has the hub collect harder before it takes more than its own.
func divide(f *flags) error {
	log := ctrl.Log.WithName("memory")
	limit, err := memory.Limit()
	if err != nil {
		log.Error(err, "renders are bounded as if there were none; set --renderers and --render-memory")
	}
	shares, err := memory.Divide(memory.Wanted{
		Limit: limit, CPUs: runtime.GOMAXPROCS(0), Bundles: cmp.Or(f.hub.MaxBundlesSize, bundle.DefaultMaxBytes),
		Renderers: f.renderers.Size, Render: f.renderers.MemoryLimit,
	})
	if err != nil {
		return err
	}
	f.renderers.Size, f.renderers.MemoryLimit = shares.Renderers, shares.Render
	log.Info("divided", "limit", limit, "hub", shares.Own, "renderers", shares.Renderers, "each", shares.Render)
	if shares.Own > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(shares.Own * 9 / 10)
	}
	return nil
}

// identify returns who this hub is. It is kept in the cache directory, so that
// a hub that was killed and is started again takes its own Lease back at once;
// a lock on the file, for as long as it is open, keeps a second process from
// being the same one.
func identify(dir string) (identity string, lock io.Closer, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", nil, fmt.Errorf("--cache-dir: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(dir, "identity"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return "", nil, fmt.Errorf("--cache-dir: %w", err)
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return "", nil, fmt.Errorf("another flotilla-hub uses the cache directory %s: stop it, or give this one a --cache-dir of its own", dir)
	}
	text := make([]byte, 64)
	if n, _ := file.Read(text); n > 0 {
		return string(text[:n]), file, nil
	}
	host, _ := os.Hostname()
	identity = host + "_" + rand.String(8)
	if _, err := file.WriteString(identity); err != nil {
		return "", nil, fmt.Errorf("--cache-dir: %w", err)
	}
	return identity, file, nil
}
