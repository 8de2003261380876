// Package groups reads which cluster groups there are.
package groups

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/target"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// In returns the cluster groups of a namespace, as from has them.
func In(ctx context.Context, from client.Reader, namespace string) (target.Groups, error) {
	list := &fleet.ClusterGroupList{}
	if err := from.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return target.Groups{}, fmt.Errorf("list the cluster groups of %s: %w", namespace, err)
	}
	return target.NewGroups(list.Items), nil
}
