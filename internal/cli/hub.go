package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// completionTimeout is how long a shell may wait for what it could offer.
const completionTimeout = 3 * time.Second

// hubFlags are common to the commands that talk to the hub.
type hubFlags struct {
	*globals
	context   string
	namespace string
}

func (f *hubFlags) add(cmd *cobra.Command, namespace string) {
	cmd.Flags().StringVar(&f.context, "context", "", "context of the kubeconfig (default: its current one)")
	cmd.Flags().StringVarP(&f.namespace, "namespace", "n", namespace, "namespace on the hub")
	_ = cmd.RegisterFlagCompletionFunc("context", func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return f.contexts(), cobra.ShellCompDirectiveNoFileComp
	})
	_ = cmd.RegisterFlagCompletionFunc("namespace", func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return f.namespaces(cmd.Context()), cobra.ShellCompDirectiveNoFileComp
	})
}

// rules tell where the kubeconfig is.
func (f *hubFlags) rules() *clientcmd.ClientConfigLoadingRules {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	return rules
}

// contexts are those of the kubeconfig.
func (f *hubFlags) contexts() []cobra.Completion {
	config, err := f.rules().Load()
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(config.Contexts))
}

// namespaces are those with GitRepos, HelmOps or clusters.
func (f *hubFlags) namespaces(ctx context.Context) []cobra.Completion {
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	hub, err := f.client()
	if err != nil {
		return nil
	}
	found := map[string]bool{}
	for _, kind := range []string{"GitRepoList", "HelmOpList", "ClusterList"} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(fleet.SchemeGroupVersion.WithKind(kind))
		if hub.List(ctx, list) != nil {
			return nil
		}
		for i := range list.Items {
			found[list.Items[i].Namespace] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// config finds the hub as kubectl finds its cluster.
func (f *hubFlags) config() (*rest.Config, error) {
	overrides := &clientcmd.ConfigOverrides{CurrentContext: f.context}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(f.rules(), overrides).ClientConfig()
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
	c, err := client.New(config, client.Options{Scheme: scheme, Mapper: hubMapper()})
	if err != nil {
		return nil, explainHub(err)
	}
	return c, nil
}

func hubScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, fleet.AddToScheme(scheme)
}

// hubMapper knows the kinds of a hub. To ask the hub for them would take a
// request that nobody can interrupt.
func hubMapper() apimeta.RESTMapper {
	m := apimeta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"GitRepo", "HelmOp", "Bundle", "BundleDeployment", "Cluster", "ClusterGroup", "BundleNamespaceMapping"} {
		for _, name := range []string{kind, kind + "List"} {
			m.Add(fleet.SchemeGroupVersion.WithKind(name), apimeta.RESTScopeNamespace)
		}
	}
	return m
}

// unknownKind tells whether an API server does not serve what was asked for.
func unknownKind(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// explainHub says what to do where the hub cannot be read.
func explainHub(err error) error {
	if explained := hubTrouble(err); explained != nil {
		return explained
	}
	return fmt.Errorf("cannot read the hub: %w", err)
}

// hubTrouble says what to do where it is the hub or the way there; nil where it
// is what was asked for.
func hubTrouble(err error) error {
	if unknownKind(err) {
		return errors.New("this is no hub: it does not have Flotilla's kinds; install the chart flotilla-crd, or name another --kubeconfig")
	}
	if apierrors.IsUnauthorized(err) {
		return errors.New("the hub does not accept the credentials of the kubeconfig: they are wrong, or have expired")
	}
	request, ok := errors.AsType[*url.Error](err)
	if !ok {
		return nil
	}
	where := request.URL
	if at, parseErr := url.Parse(where); parseErr == nil {
		where = at.Scheme + "://" + at.Host
	}
	if request.Timeout() {
		return fmt.Errorf("the hub at %s does not answer: is it the right one (--kubeconfig, --context), and does a firewall lie between?", where)
	}
	return fmt.Errorf("cannot reach the hub at %s: %w", where, request.Err)
}
