package deploy

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/flotilla-sh/flotilla/internal/downstream"
	"github.com/flotilla-sh/flotilla/internal/hub/follow"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// follow makes bundles be looked at when something changes that they copy.
func (c *Controller) follow(ctx context.Context, mgr ctrl.Manager) (source.Source, error) {
	reads, err := metadata.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("reach the hub's API server: %w", err)
	}
	changes := make(chan event.GenericEvent, 1024)
	c.follower.Start(ctx, reads, func(bundle types.NamespacedName) {
		select {
		case changes <- event.GenericEvent{Object: &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: bundle.Namespace, Name: bundle.Name}}}:
		case <-ctx.Done():
		}
	})
	return source.Channel(changes, gathered(func(_ context.Context, obj client.Object) ([]ctrl.Request, error) {
		return []ctrl.Request{{NamespacedName: client.ObjectKeyFromObject(obj)}}, nil
	})), nil
}

// copies reads what the options of a bundle want copied to its clusters. They
// are objects of the bundle's own namespace: nobody gets at another's.
func (c *Controller) copies(ctx context.Context, bundle *fleet.Bundle, spec *fleet.BundleSpec) (map[downstream.Source]downstream.Copy, error) {
	wanted, err := downstream.OfBundle(spec)
	if err != nil {
		c.follower.Follow(client.ObjectKeyFromObject(bundle), nil)
		return nil, err
	}
	objects := make([]follow.Object, 0, len(wanted))
	for _, s := range wanted {
		objects = append(objects, follow.Object{Resource: resourceOf(s), Namespace: bundle.Namespace, Name: s.Name})
	}
	// Followed first: what changes after it was read is told.
	c.follower.Follow(client.ObjectKeyFromObject(bundle), objects)
	out := make(map[downstream.Source]downstream.Copy, len(wanted))
	for _, s := range wanted {
		made, err := c.copyOf(ctx, bundle.Namespace, s)
		if err != nil {
			return nil, fmt.Errorf("downstreamResources: read the %s %s/%s: %w", s.Kind, bundle.Namespace, s.Name, err)
		}
		out[s] = made
	}
	return out, nil
}

func resourceOf(s downstream.Source) string {
	if s.Kind == "Secret" {
		return "secrets"
	}
	return "configmaps"
}

func (c *Controller) copyOf(ctx context.Context, namespace string, s downstream.Source) (downstream.Copy, error) {
	key := client.ObjectKey{Namespace: namespace, Name: s.Name}
	var err error
	var made downstream.Copy
	switch s.Kind {
	case "Secret":
		secret := &corev1.Secret{}
		if err = c.Live.Get(ctx, key, secret); err == nil {
			made = downstream.OfSecret(secret)
		}
	case "ConfigMap":
		configMap := &corev1.ConfigMap{}
		if err = c.Live.Get(ctx, key, configMap); err == nil {
			made = downstream.OfConfigMap(configMap)
		}
	default:
		return downstream.Invalid(s), nil
	}
	if apierrors.IsNotFound(err) {
		return downstream.Missing(s, namespace), nil
	}
	return made, err
}
