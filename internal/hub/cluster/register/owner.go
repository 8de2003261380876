package register

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/hub/removal"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// reasonTaken is why a Cluster stalls whose namespace another one has.
const reasonTaken = "NamespaceTaken"

// ownerOf returns the Cluster that a namespace was made for; an empty key where
// it does not say. A long name of a namespace ends in a short hash, and two
// Clusters may come to the same one: it is that of the first.
func ownerOf(ns client.Object) types.NamespacedName {
	a := ns.GetAnnotations()
	return types.NamespacedName{Namespace: a[fleet.ClusterNamespaceLabel], Name: a[fleet.ClusterLabel]}
}

// has tells whether a cluster has its namespace, and that is there to stay.
func (c *Controller) has(ctx context.Context, cluster *fleet.Cluster, namespace string) (bool, error) {
	found, err := removal.Namespace(ctx, c.Client, namespace)
	if err != nil {
		return false, err
	}
	if found != nil && ownerOf(found) != client.ObjectKeyFromObject(cluster) {
		return c.contest(ctx, cluster, namespace)
	}
	c.rivals.drop(client.ObjectKeyFromObject(cluster))
	return removal.Stays(found), nil
}

// found creates a cluster's namespace, or finds that it has just been created
// for this cluster.
func (c *Controller) found(ctx context.Context, cluster *fleet.Cluster, namespace string) error {
	err := c.Client.Create(ctx, space(cluster, namespace))
	if !apierrors.IsAlreadyExists(err) {
		if err != nil {
			err = fmt.Errorf("create namespace %s: %w", namespace, err)
		}
		return err
	}
	stays, err := c.contest(ctx, cluster, namespace)
	if err == nil && !stays {
		err = terminating(namespace)
	}
	return err
}

// contest looks past the cache whose a namespace is. The cluster is noted as a
// rival first, so that whatever happens to the namespace afterwards wakes it.
func (c *Controller) contest(ctx context.Context, cluster *fleet.Cluster, namespace string) (bool, error) {
	key := client.ObjectKeyFromObject(cluster)
	c.rivals.add(key, namespace)
	found, err := removal.Namespace(ctx, c.Live, namespace)
	if err != nil || found == nil {
		return false, err
	}
	switch owner := ownerOf(found); {
	case owner == key:
		c.rivals.drop(key)
		return removal.Stays(found), nil
	case !removal.Stays(found):
		return false, terminating(namespace)
	case owner.Name == "":
		return true, c.adopt(ctx, cluster, found)
	default:
		return false, fault.Stall(reasonTaken, fmt.Errorf(
			"the namespace %s on the hub, which is that of this Cluster by its name, belongs to the Cluster %s already, and nothing is deployed to this one: "+
				"give one of the two another name; or, where %s is gone for good, delete the namespace", namespace, owner, owner))
	}
}

// adopt makes a namespace that says of nobody whose it is that of a cluster. Of
// two that try, one does.
func (c *Controller) adopt(ctx context.Context, cluster *fleet.Cluster, found *metav1.PartialObjectMetadata) error {
	base := found.DeepCopy()
	want := space(cluster, found.Name)
	found.SetAnnotations(labels.Merge(found.Annotations, want.Annotations))
	found.SetLabels(labels.Merge(found.Labels, want.Labels))
	if err := c.Client.Patch(ctx, found, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("take the namespace %s for the Cluster: %w", found.Name, err)
	}
	return nil
}

func terminating(namespace string) error {
	return fault.Wait(namespaceSoon, "NamespaceTerminating", fmt.Errorf(
		"namespace %s is being deleted; it is made again afterwards", namespace))
}

// rivals are the Clusters that wait for a namespace which another one has.
type rivals struct {
	mu    sync.Mutex
	wants map[types.NamespacedName]string
}

func (r *rivals) add(key types.NamespacedName, namespace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.wants == nil {
		r.wants = map[types.NamespacedName]string{}
	}
	r.wants[key] = namespace
}

func (r *rivals) drop(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.wants, key)
}

// of returns those that wait for a namespace.
func (r *rivals) of(namespace string) []types.NamespacedName {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []types.NamespacedName
	for key, wants := range r.wants {
		if wants == namespace {
			out = append(out, key)
		}
	}
	return out
}
