package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// Options say where webhooks are served.
type Options struct {
	// Address is host:port; nothing is served where it is empty.
	Address string
	// CertFile and KeyFile are PEM, and are read again when they change;
	// without them it is plain HTTP.
	CertFile, KeyFile string
}

// Setup adds the receiver to a manager, if it has an address.
func (r *Receiver) Setup(ctx context.Context, mgr manager.Manager, o Options) error {
	if o.Address == "" {
		return nil
	}
	if (o.CertFile == "") != (o.KeyFile == "") {
		return errors.New("webhooks over TLS need both a certificate and a key")
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &fleet.GitRepo{}, placeIndex, placesOf); err != nil {
		return fmt.Errorf("index GitRepos: %w", err)
	}
	r.prepare(metrics.Registry)
	listener, err := r.listen(ctx, mgr, o)
	if err != nil {
		return fmt.Errorf("serve webhooks: %w", err)
	}
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { return r.run(ctx, listener) }))
}

// prepare makes what a receiver needs besides its fields.
func (r *Receiver) prepare(registry prometheus.Registerer) {
	r.slots = make(chan struct{}, atOnce)
	r.count = newCounter(registry)
}

// placesOf are the place of a GitRepo, and that of its project and name at any
// server.
func placesOf(obj client.Object) []string {
	p := place(obj.(*fleet.GitRepo).Spec.Repo)
	steps := strings.Split(p, "/")
	if len(steps) < 3 {
		return slices.DeleteFunc([]string{p}, func(p string) bool { return p == "" })
	}
	return []string{p, anywhere(strings.Join(steps[len(steps)-2:], "/"))}
}

func (r *Receiver) listen(ctx context.Context, mgr manager.Manager, o Options) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", o.Address)
	if err != nil || o.CertFile == "" {
		return listener, err
	}
	watcher, err := certwatcher.New(o.CertFile, o.KeyFile)
	if err == nil {
		err = mgr.Add(watcher)
	}
	if err != nil {
		_ = listener.Close()
		return nil, err
	}
	return tls.NewListener(listener, &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: watcher.GetCertificate}), nil
}

// run serves until ctx ends. All times are short: a webhook is one small body.
func (r *Receiver) run(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler: r, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second,
		WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 32 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve webhooks: %w", err)
	}
	return nil
}

// counter counts webhooks by provider and outcome.
type counter struct{ *prometheus.CounterVec }

// newCounter registers the metric, once for a process.
func newCounter(registry prometheus.Registerer) *counter {
	vec := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "flotilla_hub_webhooks_total",
		Help: "Webhooks by the kind of Git server and by what became of them.",
	}, []string{"provider", "outcome"})
	if known, ok := errors.AsType[prometheus.AlreadyRegisteredError](registry.Register(vec)); ok {
		vec = known.ExistingCollector.(*prometheus.CounterVec)
	}
	return &counter{vec}
}

func (c *counter) add(from provider, outcome string) {
	name := string(from)
	if name == "" {
		name = "unknown"
	}
	c.WithLabelValues(name, outcome).Inc()
}
