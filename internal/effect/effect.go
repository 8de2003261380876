// Package effect knows which fields of the API are accepted but do not act
// yet. One that only adds something has no effect, and a condition says so.
// One that restricts, or without which the result would be wrong, holds what
// it stands on until it works. It is pure.
package effect

import (
	"sort"
	"strings"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OfGitRepo names the fields of a GitRepo that have no effect yet.
func OfGitRepo(spec *fleet.GitRepoSpec) []string {
	return set(map[string]bool{
		"spec.imageScanInterval": spec.ImageSyncInterval != nil,
		"spec.imageScanCommit":   spec.ImageScanCommit != nil,
	})
}

// OfCluster names the fields of a Cluster that have no effect yet.
func OfCluster(spec *fleet.ClusterSpec) []string {
	return set(map[string]bool{
		"spec.clientID":                     spec.ClientID != "",
		"spec.kubeConfigSecret":             spec.KubeConfigSecret != "",
		"spec.kubeConfigSecretNamespace":    spec.KubeConfigSecretNamespace != "",
		"spec.redeployAgentGeneration":      spec.RedeployAgentGeneration != 0,
		"spec.agentEnvVars":                 len(spec.AgentEnvVars) > 0,
		"spec.agentNamespace":               spec.AgentNamespace != "",
		"spec.privateRepoURL":               spec.PrivateRepoURL != "",
		"spec.agentTolerations":             len(spec.AgentTolerations) > 0,
		"spec.agentAffinity":                spec.AgentAffinity != nil,
		"spec.agentResources":               spec.AgentResources != nil,
		"spec.hostNetwork":                  spec.HostNetwork != nil,
		"spec.agentPullSecrets":             len(spec.AgentPullSecrets) > 0,
		"spec.agentSchedulingCustomization": spec.AgentSchedulingCustomization != nil,
	})
}

// OfBundle names the fields of a bundle that have no effect yet.
func OfBundle(spec *fleet.BundleSpec) []string {
	fields := ofOptions(&spec.BundleDeploymentOptions)
	if spec.RolloutStrategy != nil {
		fields = append(fields, "rolloutStrategy")
	}
	for i := range spec.Targets {
		fields = append(fields, ofOptions(&spec.Targets[i].BundleDeploymentOptions)...)
	}
	return unique(fields)
}

func ofOptions(o *fleet.BundleDeploymentOptions) []string {
	fields := map[string]bool{}
	for _, key := range reservedOf(o.NamespaceLabels) {
		fields["namespaceLabels["+key+"]"] = true
	}
	for _, key := range reservedOf(o.NamespaceAnnotations) {
		fields["namespaceAnnotations["+key+"]"] = true
	}
	return set(fields)
}

// Holds says why a deployment with these options must not be made yet, or "".
func Holds(o *fleet.BundleDeploymentOptions) string {
	var why []string
	if o.AllowedTargetNamespaceSelector != nil {
		why = append(why, "allowedTargetNamespaceSelector restricts the namespaces, and is not enforced yet")
	}
	if len(why) == 0 {
		return ""
	}
	return "held: " + strings.Join(why, "; ")
}

// Condition is the Effective condition for fields without effect.
func Condition(fields []string) fleet.Condition {
	if len(fields) == 0 {
		return fleet.Condition{Type: fleet.ConditionEffective, Status: metav1.ConditionTrue, Reason: fleet.ReasonEffective}
	}
	return fleet.Condition{
		Type:    fleet.ConditionEffective,
		Status:  metav1.ConditionFalse,
		Reason:  fleet.ReasonNotYetEffective,
		Message: "accepted, but without effect yet: " + strings.Join(fields, ", "),
	}
}

// set returns the names whose value is true, sorted.
func set(fields map[string]bool) []string {
	var out []string
	for name, isSet := range fields {
		if isSet {
			out = append(out, name)
		}
	}
	sort.Strings(out)
	return out
}

func unique(names []string) []string {
	seen := map[string]bool{}
	for _, name := range names {
		seen[name] = true
	}
	return set(seen)
}
