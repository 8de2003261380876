package v1alpha1

// EnvVar is an environment variable.
type EnvVar struct {
	// Name is the name of the variable.
	Name string `json:"name"`
	// Value is the value of the variable.
	// +optional
	// +nullable
	Value string `json:"value,omitempty"`
	// ValueFrom is where the value comes from, as in a container.
	// +optional
	// +nullable
	ValueFrom *GenericMap `json:"valueFrom,omitempty"`
}

// Toleration lets the agent run on tainted nodes.
type Toleration struct {
	// Key is the key of the taint; empty means all, with the operator Exists.
	// +optional
	Key string `json:"key,omitempty"`
	// Operator compares the value: Exists, Equal, Lt or Gt; empty means Equal.
	// +optional
	Operator string `json:"operator,omitempty"`
	// Value is the value of the taint.
	// +optional
	Value string `json:"value,omitempty"`
	// Effect is the effect of the taint; empty means all.
	// +optional
	Effect string `json:"effect,omitempty"`
	// TolerationSeconds is how long the taint is tolerated; unset means for ever.
	// +optional
	// +nullable
	TolerationSeconds *int64 `json:"tolerationSeconds,omitempty"`
}

// AgentSchedulingCustomization says how the agent is scheduled.
type AgentSchedulingCustomization struct {
	// PriorityClass is the priority class that is made for the agent.
	// +optional
	// +nullable
	PriorityClass *PriorityClassSpec `json:"priorityClass,omitempty"`
	// PodDisruptionBudget is the disruption budget that is made for the agent.
	// +optional
	// +nullable
	PodDisruptionBudget *PodDisruptionBudgetSpec `json:"podDisruptionBudget,omitempty"`
}

// PriorityClassSpec is a priority class.
type PriorityClassSpec struct {
	// Value is the priority.
	// +optional
	Value int `json:"value,omitempty"`
	// PreemptionPolicy is Never or PreemptLowerPriority.
	// +optional
	// +nullable
	PreemptionPolicy string `json:"preemptionPolicy,omitempty"`
}

// PodDisruptionBudgetSpec is a pod disruption budget.
type PodDisruptionBudgetSpec struct {
	// MinAvailable is the number or share of pods that stay.
	// +optional
	// +nullable
	MinAvailable string `json:"minAvailable,omitempty"`
	// MaxUnavailable is the number or share of pods that may go.
	// +optional
	// +nullable
	MaxUnavailable string `json:"maxUnavailable,omitempty"`
}
