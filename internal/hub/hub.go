// Package hub runs the controllers of the management cluster.
package hub

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"path/filepath"
	"sync"
	"time"
	"unique"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/flotilla-sh/flotilla/internal/content"
	"github.com/flotilla-sh/flotilla/internal/content/kube"
	"github.com/flotilla-sh/flotilla/internal/hub/access"
	"github.com/flotilla-sh/flotilla/internal/hub/bundle/deploy"
	"github.com/flotilla-sh/flotilla/internal/hub/bundle/sources"
	"github.com/flotilla-sh/flotilla/internal/hub/bundle/write"
	"github.com/flotilla-sh/flotilla/internal/hub/capabilities"
	"github.com/flotilla-sh/flotilla/internal/hub/cluster/lease"
	"github.com/flotilla-sh/flotilla/internal/hub/cluster/register"
	"github.com/flotilla-sh/flotilla/internal/hub/content/gc"
	"github.com/flotilla-sh/flotilla/internal/hub/gauges"
	"github.com/flotilla-sh/flotilla/internal/hub/gitrepo/pack"
	"github.com/flotilla-sh/flotilla/internal/hub/gitrepo/poll"
	"github.com/flotilla-sh/flotilla/internal/hub/gitrepo/webhook"
	"github.com/flotilla-sh/flotilla/internal/hub/guard"
	"github.com/flotilla-sh/flotilla/internal/hub/helmop"
	"github.com/flotilla-sh/flotilla/internal/hub/lean"
	"github.com/flotilla-sh/flotilla/internal/hub/noeffect"
	"github.com/flotilla-sh/flotilla/internal/hub/registries"
	"github.com/flotilla-sh/flotilla/internal/hub/summary"
	"github.com/flotilla-sh/flotilla/internal/names"
	"github.com/flotilla-sh/flotilla/internal/pipeline"
	"github.com/flotilla-sh/flotilla/internal/render"
	"github.com/flotilla-sh/flotilla/internal/source/chart"
	"github.com/flotilla-sh/flotilla/internal/source/git"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

const (
	// keySecret holds the key from which names of content are made.
	keySecret = "flotilla-hub-key"
	// renderRoom is the memory for results of renders.
	renderRoom = 64 << 20
)

// Options are what a hub is started with.
type Options struct {
	// Config reaches the hub's API server.
	Config *rest.Config
	// Namespace is where the hub keeps what is its own.
	Namespace string
	// CacheDir holds clones; it may be lost at any time.
	CacheDir string
	// Git answers for the repositories of GitRepos; nil asks their servers, and
	// keeps clones in CacheDir.
	Git git.Source
	// GitCacheSize is how many bytes of clones stay there; 0 is no bound.
	GitCacheSize int64
	// MaxBundlesSize is how many bytes the bundles of one GitRepo may have
	// together; 0 is no bound.
	MaxBundlesSize int64
	// Identity tells this hub from another; see guard.Guard.
	Identity string
	// Renderer renders; it must be safe for concurrent use.
	Renderer render.Renderer
	// MaxRenders is how many different renders of one bundle are made here.
	MaxRenders int
	// Charts bounds charts from elsewhere; the zero value is the default.
	Charts chart.Limits
	// Mirrors are asked for charts and repositories in place of what is named.
	Mirrors chart.Mirrors
	// RegistrySecret is the name of a Secret in Namespace with the registry for
	// the content of bundles that name none; empty keeps it on the API server.
	RegistrySecret string
	// MetricsAddress serves Prometheus metrics; "0" turns them off.
	MetricsAddress string
	// Webhooks says where Git servers call.
	Webhooks webhook.Options
	// PprofAddress serves profiles of the hub itself; empty turns them off.
	PprofAddress string
}

// Scheme holds every kind that the hub reads or writes.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	return scheme, fleet.AddToScheme(scheme)
}

// sharedScheme is that of all hubs of this process; nobody adds to it.
var sharedScheme = sync.OnceValues(Scheme)

// Run runs the hub until ctx ends or another hub takes over.
func Run(ctx context.Context, o Options) error {
	scheme, err := sharedScheme()
	if err != nil {
		return err
	}
	o.Config = rest.CopyConfig(o.Config)
	o.Config.QPS = -1 // the API server's own fairness is the limit
	live, err := lean.New(o.Config, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("reach the hub's API server: %w", err)
	}
	g := &guard.Guard{Client: live, Namespace: o.Namespace, Identity: o.Identity, Clock: clock.RealClock{}}
	if err := g.Acquire(ctx); err != nil {
		return err
	}
	key, err := contentKey(ctx, live, o.Namespace)
	if err != nil {
		return err
	}
	mgr, err := newManager(ctx, o, scheme)
	if err != nil {
		return err
	}
	if err := wire(ctx, mgr, wiring{options: o, live: live, guard: g, key: key}); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func newManager(ctx context.Context, o Options, scheme *runtime.Scheme) (manager.Manager, error) {
	managed := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{fleet.ManagedLabel: "true"})}
	return ctrl.NewManager(o.Config, ctrl.Options{
		Scheme:  scheme,
		Metrics: server.Options{BindAddress: o.MetricsAddress},

		PprofBindAddress: o.PprofAddress,
		// Names of controllers are unique to a process, not to a test's.
		Controller:              config.Controller{SkipNameValidation: ptr.To(true)},
		GracefulShutdownTimeout: ptr.To(5 * time.Second),
		NewClient:               lean.New,
		Client: client.Options{Cache: &client.CacheOptions{
			DisableFor: []client.Object{&corev1.Secret{}},
		}},
		NewCache: func(config *rest.Config, options cache.Options) (cache.Cache, error) {
			c, err := cache.New(config, options)
			return endable{c, ctx}, err
		},
		Cache: cache.Options{
			DefaultTransform: dropUnread,
			ByObject: map[client.Object]cache.ByObject{
				&corev1.ConfigMap{}: managed,
				// Metadata alone, to see when a registry for content changes.
				&corev1.Secret{}:          {Field: fields.OneTermEqualSelector("type", fleet.OCIStorageType)},
				&coordinationv1.Lease{}:   managed,
				&fleet.BundleDeployment{}: {},
			},
		},
	})
}

// endable is a cache of which nobody waits to be synced once the hub ends: the
// manager would wait for it without end, and busily, while the API server is
// out of reach.
type endable struct {
	cache.Cache
	end context.Context //nolint:containedctx // the manager's own context does not end before the caches are synced
}

// WaitForCacheSync waits until the cache is synced or the hub ends.
func (c endable) WaitForCacheSync(ctx context.Context) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.end, cancel)()
	return c.Cache.WaitForCacheSync(ctx) || ctx.Err() != nil
}

// dropUnread takes out of cached objects what no controller reads, and keeps
// once what all clusters report alike.
func dropUnread(obj any) (any, error) {
	if o, ok := obj.(client.Object); ok {
		o.SetManagedFields(nil)
	}
	switch o := obj.(type) {
	case *corev1.ConfigMap:
		for key, text := range o.Data {
			o.Data[key] = unique.Make(text).Value()
		}
	case *coordinationv1.Lease:
		lease.Trim(o)
	}
	return obj, nil
}

// wiring is what the controllers are made from.
type wiring struct {
	options Options
	live    client.Client
	guard   *guard.Guard
	key     content.Key
}

// wire adds all controllers: the table of contents of the hub.
func wire(ctx context.Context, mgr manager.Manager, w wiring) error {
	clones, err := openGitCache(filepath.Join(w.options.CacheDir, "git"), w.options.GitCacheSize)
	if err != nil {
		return err
	}
	fetcher, err := chart.New(chart.Options{
		Dir: filepath.Join(w.options.CacheDir, "charts"), Git: clones, Limits: cmp.Or(w.options.Charts, chart.DefaultLimits()), Mirrors: w.options.Mirrors,
	})
	if err != nil {
		return err
	}
	repos := w.options.Git
	if repos == nil {
		repos = clones
	}
	standard := client.ObjectKey{}
	if name := w.options.RegistrySecret; name != "" {
		standard = client.ObjectKey{Namespace: w.options.Namespace, Name: name}
	}
	var (
		c      = mgr.GetClient()
		now    = clock.RealClock{}
		store  = kube.New(w.live)
		files  = sources.New(store, w.key)
		packed = &write.Writer{Client: c, Live: w.live, Store: store, Sources: files}
		where  = registries.New(w.live, w.key, standard, now)
		stages = &pipeline.Stages{Renderer: render.NewMemo(w.options.Renderer, renderRoom), Key: w.key, MaxRenders: w.options.MaxRenders}
		events = mgr.GetEventRecorder("flotilla-hub")
		reach  = &access.Reader{Live: w.live, Namespace: w.options.Namespace, Mirrors: w.options.Mirrors}
		polls  = &poll.Controller{Client: c, Git: repos, Access: reach, Events: events, Clock: now}
	)
	setups := []error{
		gauges.Register(metrics.Registry, c),
		mgr.Add(manager.RunnableFunc(w.guard.Run)),
		polls.Setup(ctx, mgr),
		(&webhook.Receiver{Client: c, Live: w.live, Namespace: w.options.Namespace, Events: events, Clock: now}).Setup(ctx, mgr, w.options.Webhooks),
		(&pack.Controller{Access: reach, Git: repos, Charts: fetcher, Bundles: packed, Events: events, Clock: now, MaxBytes: w.options.MaxBundlesSize,
			Overtaken: polls.Expect}).Setup(mgr),
		(&helmop.Controller{Access: reach, Charts: fetcher, Bundles: packed, Events: events, Clock: now}).Setup(mgr),
		(&deploy.Controller{Client: c, Live: w.live, Stages: stages, Store: store, Sources: files, Registries: where,
			Capabilities: capabilities.NewReader(c), Events: events, Clock: now}).Setup(ctx, mgr),
		(&register.Controller{Client: c, Live: w.live, Store: store, Registries: where, Hub: names.Hub(w.key), Clock: now}).Setup(mgr),
		(&lease.Controller{Contact: w.guard, Client: c, Events: events, Clock: now}).Setup(mgr),
		(&summary.Controller{Client: c, Clock: now}).Setup(mgr),
		noeffect.Setup(mgr, now),
		mgr.Add(&gc.Collector{Client: c, Live: w.live, Store: store, Registries: where, Clock: now}),
	}
	for _, err := range setups {
		if err != nil {
			return err
		}
	}
	return nil
}

// contentKey returns the hub's key, which the first hub makes.
func contentKey(ctx context.Context, live client.Client, namespace string) (content.Key, error) {
	secret := &corev1.Secret{}
	name := client.ObjectKey{Namespace: namespace, Name: keySecret}
	err := live.Get(ctx, name, secret)
	if err == nil {
		return secret.Data["key"], nil
	}
	if !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("read the secret %s: %w", name, err)
	}
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		return nil, err
	}
	secret = &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: keySecret},
		Immutable:  ptr.To(true),
		Data:       map[string][]byte{"key": key},
	}
	if err := live.Create(ctx, secret); err != nil {
		return nil, fmt.Errorf("create the secret %s: %w", name, err)
	}
	return key, nil
}
