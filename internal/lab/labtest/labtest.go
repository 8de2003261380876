// Package labtest prepares API servers of the lab for tests of one part of
// Flotilla, which install no more of it than they need.
package labtest

import (
	"context"
	"fmt"
	"io/fs"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-sh/flotilla/charts"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

const (
	// servedWithin is how long an API server may take to serve a new kind.
	servedWithin = time.Minute
	// servedEach is how often it is asked.
	servedEach = 5 * time.Millisecond
)

// Config reaches the API server of a kubeconfig, without a rate limit.
func Config(kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return config, nil
}

// InstallHub does what the hub's charts do that a hub cannot do without: its
// kinds, which are served when this returns, and the namespace for content. The
// scheme of c has definitions of kinds.
func InstallHub(ctx context.Context, c client.Client) error {
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fleet.ContentNamespace}}
	if err := c.Create(ctx, space); err != nil {
		return err
	}
	files, err := fs.Glob(charts.FS, "flotilla-crd/templates/*.yaml")
	if err != nil {
		return err
	}
	for _, file := range files {
		raw, err := fs.ReadFile(charts.FS, file)
		if err != nil {
			return err
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(raw, crd); err != nil {
			return err
		}
		if err := c.Create(ctx, crd); err != nil {
			return err
		}
		if err := Served(ctx, c, crd); err != nil {
			return err
		}
	}
	return nil
}

// Served waits until the API server serves a kind.
func Served(ctx context.Context, c client.Client, crd *apiextensionsv1.CustomResourceDefinition) error {
	err := wait.PollUntilContextTimeout(ctx, servedEach, servedWithin, true, func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKeyFromObject(crd), crd)
		for _, condition := range crd.Status.Conditions {
			if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
				return true, err
			}
		}
		return false, err
	})
	if err != nil {
		return fmt.Errorf("wait until the API server serves %s: %w", crd.Name, err)
	}
	return nil
}
