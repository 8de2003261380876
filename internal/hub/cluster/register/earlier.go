package register

import (
	"context"
	"fmt"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// earlierAgain is when a hub tries again to take away rights of earlier.
const earlierAgain = time.Minute

// withdraw takes away what an earlier version gave agents: the right to write
// the status of their Cluster, beside the Cluster.
func (c *Controller) withdraw(ctx context.Context) error {
	_ = wait.PollUntilContextCancel(ctx, earlierAgain, true, func(ctx context.Context) (bool, error) {
		if err := c.WithdrawEarlier(ctx); err != nil && ctx.Err() == nil {
			logf.FromContext(ctx).Error(err, "agents keep the right to write the status of their Cluster until this succeeds")
			return false, nil
		}
		return true, nil
	})
	return nil
}

// WithdrawEarlier deletes the roles of agents beside Clusters, and their
// bindings. A binding goes last: by it the role is found.
func (c *Controller) WithdrawEarlier(ctx context.Context) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("RoleBindingList"))
	err := c.Live.List(ctx, list, client.MatchingLabels{fleet.ManagedLabel: "true"},
		client.MatchingFieldsSelector{Selector: fields.OneTermNotEqualSelector("metadata.name", fleet.AgentName)})
	if err != nil {
		return fmt.Errorf("list the bindings of agents: %w", err)
	}
	for i := range list.Items {
		b := &list.Items[i]
		if !strings.HasPrefix(b.Name, fleet.AgentName+"-") {
			continue
		}
		meta := metav1.ObjectMeta{Namespace: b.Namespace, Name: b.Name}
		for _, obj := range []client.Object{&rbacv1.Role{ObjectMeta: meta}, &rbacv1.RoleBinding{ObjectMeta: meta}} {
			if err := c.Client.Delete(ctx, obj); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("delete %T %s/%s of an earlier version: %w", obj, b.Namespace, b.Name, err)
			}
		}
	}
	return nil
}
