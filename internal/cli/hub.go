package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// hubFlags are common to the commands that talk to the hub.
type hubFlags struct {
	*globals
	context   string
	namespace string
}

func (f *hubFlags) add(cmd *cobra.Command, namespace string) {
	cmd.Flags().StringVar(&f.context, "context", "", "context of the kubeconfig (default: its current one)")
	cmd.Flags().StringVarP(&f.namespace, "namespace", "n", namespace, "namespace on the hub")
}

// config finds the hub as kubectl finds its cluster.
func (f *hubFlags) config() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: f.context}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, usagef("which hub? Name its kubeconfig by --kubeconfig or $KUBECONFIG; that of a lab is hub.kubeconfig in its directory")
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the kubeconfig of the hub: %w", err)
	}
	config.UserAgent = "flotilla"
	config.QPS = -1 // the API server defends itself
	return config, nil
}

func (f *hubFlags) client() (client.Client, error) {
	config, err := f.config()
	if err != nil {
		return nil, err
	}
	scheme, err := hubScheme()
	if err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("cannot talk to the hub at %s: %w", config.Host, err)
	}
	return c, nil
}

func hubScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, fleet.AddToScheme(scheme)
}
