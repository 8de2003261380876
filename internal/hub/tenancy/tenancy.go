// Package tenancy holds GitRepos back in namespaces where a Policy or a
// GitRepoRestriction limits them: the limits are not enforced yet, and acting
// without them would be worse than not acting.
package tenancy

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/fault"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// lookAgain is how soon a held namespace is looked at again.
const lookAgain = 30 * time.Second

// Check returns a waiting error where a namespace has limits.
func Check(ctx context.Context, reader client.Reader, namespace string) error {
	policies := &fleet.PolicyList{}
	if err := reader.List(ctx, policies, client.InNamespace(namespace), client.Limit(1)); err != nil {
		return fmt.Errorf("list policies: %w", err)
	}
	if len(policies.Items) > 0 {
		return held("Policy", namespace, policies.Items[0].Name)
	}
	restrictions := &fleet.GitRepoRestrictionList{}
	if err := reader.List(ctx, restrictions, client.InNamespace(namespace), client.Limit(1)); err != nil {
		return fmt.Errorf("list restrictions: %w", err)
	}
	if len(restrictions.Items) > 0 {
		return held("GitRepoRestriction", namespace, restrictions.Items[0].Name)
	}
	return nil
}

func held(kind, namespace, name string) error {
	return fault.Wait(lookAgain, fleet.ReasonPolicyViolation, fmt.Errorf(
		"held: %s %s/%s limits what may be deployed from this namespace, and limits are not enforced yet; "+
			"nothing new is deployed from here as long as it exists", kind, namespace, name))
}
