package labtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/lab"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// Server is a real API server that all tests of a package share. What a hub
// cannot do without is there.
type Server struct {
	Config *rest.Config
	Client client.WithWatch
	// PID is the id of its process.
	PID int
}

// Main runs the tests of a package, and gives them one API server by use. Where
// there can be none it is not called; tests that need it call Skip.
func Main(m *testing.M, use func(Server)) int {
	for _, name := range needed {
		if missing(name) != nil {
			return m.Run()
		}
	}
	stop, err := serve(use)
	defer stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "start an API server for the tests:", err)
		return 1
	}
	return m.Run()
}

func serve(use func(Server)) (stop func(), err error) {
	dir, err := os.MkdirTemp("", "labtest")
	if err != nil {
		return func() {}, err
	}
	remove := func() { _ = os.RemoveAll(dir) }
	l, err := lab.Start(context.Background(), lab.Options{Dir: filepath.Join(dir, "lab"), Programs: lab.ProgramsIn(*bin)})
	if err != nil {
		return remove, err
	}
	stop = func() {
		_ = l.Stop()
		remove()
	}
	s, err := connect(l.Status())
	if err != nil {
		return stop, err
	}
	use(s)
	return stop, nil
}

func connect(status lab.Status) (s Server, err error) {
	if s.Config, err = Config(status.Hub.Kubeconfig); err != nil {
		return s, err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, fleet.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return s, err
		}
	}
	if s.Client, err = client.NewWithWatch(s.Config, client.Options{Scheme: scheme}); err != nil {
		return s, err
	}
	for _, unit := range status.Units {
		for _, p := range unit.Processes {
			if p.Name == "hub-kube-apiserver" {
				s.PID = p.PID
			}
		}
	}
	return s, InstallHub(context.Background(), s.Client)
}
