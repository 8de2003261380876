package hub

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-sh/flotilla/internal/content"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// Content returns a getter for the payloads that deployments name.
func (c *Client) Content() content.Getter { return contents{c} }

type contents struct{ *Client }

// Get reads a payload from its ConfigMap, or from its Secret. Payloads never
// change, so that what the API server has in its cache is as good as the
// newest, and costs it least.
func (c contents) Get(ctx context.Context, ref content.Ref) (content.Parcel, error) {
	parcel, err := c.read(ctx, ref, "0")
	if apierrors.IsNotFound(err) {
		// The cache of an API server may not have a payload yet that was
		// written just before its deployment.
		parcel, err = c.read(ctx, ref, "")
	}
	return parcel, err
}

func (c contents) read(ctx context.Context, ref content.Ref, resourceVersion string) (content.Parcel, error) {
	options := metav1.GetOptions{ResourceVersion: resourceVersion}
	if ref.Secret {
		secret, err := c.core.Secrets(c.namespace).Get(ctx, ref.Name, options)
		if err != nil {
			return content.Parcel{}, err
		}
		return content.FromSecret(secret), nil
	}
	configMap, err := c.core.ConfigMaps(fleet.ContentNamespace).Get(ctx, ref.Name, options)
	if err != nil {
		return content.Parcel{}, err
	}
	return content.FromConfigMap(configMap), nil
}

// Registry reads how a registry with content is reached.
func (c *Client) Registry(ctx context.Context, name string) (map[string][]byte, error) {
	secret, err := c.core.Secrets(c.namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return secret.Data, nil
}
