// Command flotilla-hub runs the controllers of the management cluster.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/flotilla-sh/flotilla/internal/bundle"
	"github.com/flotilla-sh/flotilla/internal/hub"
	"github.com/flotilla-sh/flotilla/internal/hub/gitrepo/webhook"
	"github.com/flotilla-sh/flotilla/internal/pipeline"
	"github.com/flotilla-sh/flotilla/internal/render/worker"
	"github.com/flotilla-sh/flotilla/internal/source/chart"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == worker.Command {
		exit(worker.Main(os.Stdin, os.Stdout))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	exit(run(ctx, os.Args[1:]))
}

func exit(err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "flotilla-hub:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// flags are the command line.
type flags struct {
	registrySecret                                         string
	kubeconfig, namespace, cacheDir, metrics, pprof, level string
	renderProfiles                                         string
	webhooks                                               webhook.Options
	renderDeadline                                         time.Duration
	renderMemory, gitCacheSize, maxBundlesSize             int64
	renderers, maxRenders                                  int
	charts                                                 chart.Limits
	mirrors                                                []string
}

func parse(args []string) (flags, error) {
	var f flags
	set := flag.NewFlagSet("flotilla-hub", flag.ContinueOnError)
	set.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig of the hub's API server (default: the pod's own)")
	set.StringVar(&f.namespace, "namespace", fleet.SystemNamespace, "namespace for what is the hub's own")
	set.StringVar(&f.cacheDir, "cache-dir", filepath.Join(os.TempDir(), "flotilla-hub"), "directory for clones; it may be lost at any time")
	set.Int64Var(&f.gitCacheSize, "git-cache-size", 1<<30, "how many bytes of clones stay in --cache-dir; the least recently used go first; 0 is no bound")
	set.Int64Var(&f.maxBundlesSize, "git-max-bundles-size", bundle.DefaultMaxBytes, "how many bytes the files of all bundles of one GitRepo may have together, which are in memory at once; 0 is no bound")
	set.StringVar(&f.metrics, "metrics-bind-address", ":8080", "address of the Prometheus metrics; 0 turns them off")
	set.StringVar(&f.pprof, "pprof-bind-address", "", "address of profiles of this program, such as localhost:6060; none where empty")
	set.StringVar(&f.level, "log-level", "info", "debug, info, warn or error")
	set.StringVar(&f.registrySecret, "content-registry-secret", "", "Secret in --namespace with an OCI registry for the content of bundles that name none (default: content stays on the API server)")
	set.StringVar(&f.webhooks.Address, "webhook-bind-address", "", "address for webhooks of Git servers, such as :8090; none where empty")
	set.StringVar(&f.webhooks.CertFile, "webhook-cert-file", "", "certificate, in PEM, to serve webhooks over TLS with; read again when it changes")
	set.StringVar(&f.webhooks.KeyFile, "webhook-key-file", "", "key of --webhook-cert-file")
	set.DurationVar(&f.renderDeadline, "render-deadline", time.Minute, "how long one render may take before it is ended")
	set.Int64Var(&f.renderMemory, "render-memory", 1<<30, "how many bytes one render may use")
	set.IntVar(&f.renderers, "renderers", 0, "how many renders may run at once (default: one for each CPU)")
	set.StringVar(&f.renderProfiles, "render-profiles", "", "directory where each process that renders writes a CPU profile when it ends; none where empty")
	set.IntVar(&f.maxRenders, "max-renders", pipeline.DefaultMaxRenders, "how many different renders of one bundle the hub makes before its clusters make them")
	limits := chart.DefaultLimits()
	set.Int64Var(&f.charts.Size, "chart-max-size", limits.Size, "how many bytes a chart from elsewhere may have, packed and unpacked")
	set.IntVar(&f.charts.Files, "chart-max-files", limits.Files, "how many files a chart from elsewhere may have")
	set.Func("mirror", "`upstream=mirror`: a beginning of URLs of charts and Git repositories, and what to ask in place of it, such as https://charts.example.org=https://mirror.internal/charts; may be repeated", func(pair string) error {
		f.mirrors = append(f.mirrors, pair)
		return nil
	})
	set.Usage = func() {
		fmt.Fprintln(set.Output(), "flotilla-hub runs the controllers of the management cluster.\n\nExample:\n  flotilla-hub --kubeconfig ~/.kube/hub\n\nFlags:")
		set.PrintDefaults()
	}
	return f, set.Parse(args)
}

func run(ctx context.Context, args []string) error {
	f, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		os.Exit(2)
	}
	if err := setLogger(f.level); err != nil {
		return err
	}
	mirrors, err := chart.ParseMirrors(f.mirrors)
	if err != nil {
		return fmt.Errorf("--mirror: %w", err)
	}
	identity, lock, err := identify(f.cacheDir)
	if err != nil {
		return err
	}
	defer lock.Close()
	config, err := connect(f.kubeconfig)
	if err != nil {
		return err
	}
	executable, err := os.Executable()
	if err != nil {
		return err
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	pool := worker.NewPool(worker.Options{
		Executable: executable, Size: f.renderers, MemoryLimit: f.renderMemory, Deadline: f.renderDeadline,
		Profiles: f.renderProfiles,
	})
	defer pool.Close()
	return hub.Run(ctx, hub.Options{
		Config: config, Namespace: f.namespace, CacheDir: f.cacheDir, GitCacheSize: f.gitCacheSize, MaxBundlesSize: f.maxBundlesSize, Identity: identity,
		RegistrySecret: f.registrySecret, Charts: f.charts, Mirrors: mirrors,
		Renderer: pool, MaxRenders: f.maxRenders, MetricsAddress: f.metrics, PprofAddress: f.pprof,
		Webhooks: f.webhooks,
	})
}

// gcPercent makes the hub collect garbage earlier than Go does by itself: most
// of its peak memory in a large rollout was garbage. GOGC overrides it.
const gcPercent = 50

func setLogger(level string) error {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return fmt.Errorf("--log-level %q: must be debug, info, warn or error", level)
	}
	logger := logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: l}))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	return nil
}

func connect(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("no --kubeconfig was given, and this is no pod: %w", err)
		}
		return config, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig %s: %w", kubeconfig, err)
	}
	config.UserAgent = "flotilla-hub"
	return config, nil
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
