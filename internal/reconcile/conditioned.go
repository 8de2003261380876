package reconcile

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// Conditioned is an object that keeps conditions in its status.
type Conditioned interface {
	client.Object
	// StatusConditions is where it keeps them.
	StatusConditions() *[]fleet.Condition
}
