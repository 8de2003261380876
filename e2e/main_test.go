// Package e2e tests the whole system on real control planes: a hub, spokes, a
// Git server, the controllers and the agents as processes of their own, as a
// user starts them.
package e2e

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flotilla-sh/flotilla/internal/hub"
	"github.com/flotilla-sh/flotilla/internal/lab"
)

// bin is where "make build controlplane" puts the programs.
var bin, _ = filepath.Abs("../bin")

// shared is the lab that all tests use that do not break theirs.
var shared *world

// together is how many tests run at once: they wait for clusters more than they
// work. Tests that stop parts of the lab, or hold a whole namespace, are not
// parallel and come before the others.
const together = "4"

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", together); err != nil {
		panic(err)
	}
	log.SetLogger(logr.Discard())
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if _, err := os.Stat(filepath.Join(bin, "controlplane")); err != nil {
		fmt.Println("the tests need the programs in bin/: run them by make e2e or make test:", err)
		return 1
	}
	dir, err := os.MkdirTemp("", "flotilla-e2e-")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(dir)
	shared, err = newWorld(context.Background(), filepath.Join(dir, "lab"), 3)
	if err != nil {
		fmt.Println("start the lab:", err)
		return 1
	}
	defer shared.lab.Stop()
	return m.Run()
}

// world is a lab and clients for its clusters.
type world struct {
	lab    *lab.Lab
	status lab.Status
	hub    client.Client
	spokes map[string]client.Client
	// webhooks is where the hub listens for Git servers.
	webhooks string
}

func newWorld(ctx context.Context, dir string, spokes int) (*world, error) {
	webhooks, err := freeAddress()
	if err != nil {
		return nil, err
	}
	l, err := lab.Start(ctx, lab.Options{
		Dir: dir, Spokes: lab.DefaultSpokes(spokes), Programs: lab.ProgramsIn(bin), Products: true,
		HubArgs: []string{"--render-deadline=10s", "--webhook-bind-address=" + webhooks}, AgentArgs: []string{"--heartbeat=2s"},
	})
	if err != nil {
		return nil, err
	}
	w := &world{lab: l, status: l.Status(), spokes: map[string]client.Client{}, webhooks: webhooks}
	if w.hub, err = connect(w.status.Hub.Kubeconfig); err != nil {
		return nil, err
	}
	for _, s := range w.status.Spokes {
		if w.spokes[s.Name], err = connect(s.Kubeconfig); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// freeAddress is an address that nobody listens on.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

func connect(kubeconfig string) (client.Client, error) {
	scheme, err := hub.Scheme()
	if err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(kubeconfig)
	if err != nil {
		return nil, err
	}
	cfg, err := clientcmd.RESTConfigFromKubeConfig(raw)
	if err != nil {
		return nil, err
	}
	cfg.QPS = -1
	return client.New(cfg, client.Options{Scheme: scheme})
}
