// Package overview turns the objects of a hub into what "flotilla status"
// shows: what is where, what is wrong and why. It is pure: objects go in, a
// report comes out, and a report prints itself.
package overview

import (
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// Input are the objects of a hub.
type Input struct {
	GitRepos    []fleet.GitRepo
	HelmOps     []fleet.HelmOp
	Bundles     []fleet.Bundle
	Clusters    []fleet.Cluster
	Deployments []fleet.BundleDeployment
	// Namespace is the one that they are of; empty for all. Clusters may be of
	// others, where deployments name them.
	Namespace string
	// Unread is why nobody could read the deployments, if so.
	Unread string
	// GitRepo, where set, is the name of the only one to report on.
	GitRepo string
}

// Report is what is where and what is wrong.
type Report struct {
	// Ready tells that nothing is wrong.
	Ready bool `json:"ready"`
	// GitRepos, HelmOps, Clusters and Bundles are sorted by namespace and name.
	GitRepos []GitRepo `json:"gitRepos"`
	HelmOps  []HelmOp  `json:"helmOps"`
	Clusters []Cluster `json:"clusters"`
	Bundles  []Bundle  `json:"bundles"`
	// Deployments are sorted by cluster and bundle.
	Deployments []Deployment `json:"deployments"`
	// Problems are what keeps the fleet from being ready.
	Problems []Problem `json:"problems"`
	// Notes are worth knowing and no problem.
	Notes []Problem `json:"notes"`
	// Unread is why there are no deployments here; empty where they were read.
	Unread string `json:"unread,omitempty"`
	// namespace is the only one that was looked at, and gitRepo the only GitRepo;
	// empty for all.
	namespace, gitRepo string
}

// GitRepo is one line of the list of GitRepos.
type GitRepo struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Commit is the one that the Bundles are of.
	Commit string `json:"commit"`
	// Ready and Wanted count deployments.
	Ready  int    `json:"ready"`
	Wanted int    `json:"wanted"`
	State  string `json:"state"`
}

// Cluster is one line of the list of clusters.
type Cluster struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Ready and Wanted count deployments.
	Ready  int    `json:"ready"`
	Wanted int    `json:"wanted"`
	State  string `json:"state"`
	// Version is the cluster's Kubernetes version.
	Version string `json:"kubernetesVersion,omitempty"`
}

// Bundle is one bundle.
type Bundle struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	GitRepo   string `json:"gitRepo,omitempty"`
	// Ready and Wanted count clusters.
	Ready  int    `json:"ready"`
	Wanted int    `json:"wanted"`
	State  string `json:"state"`
	// HeldBack counts clusters with an error of their own.
	HeldBack int `json:"heldBack,omitempty"`
}

// Deployment is one bundle on one cluster.
type Deployment struct {
	// Bundle and Cluster are namespace/name.
	Bundle  string `json:"bundle"`
	Cluster string `json:"cluster"`
	State   string `json:"state"`
	// Digest names what the cluster should run.
	Digest string `json:"digest,omitempty"`
}

// Problem is one thing that is wrong, or worth knowing.
type Problem struct {
	// Kind, Namespace and Name are of the object that it stands on.
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Cluster is the namespace/name of the cluster, where it is of one.
	Cluster string `json:"cluster,omitempty"`
	// State is a word for the problem.
	State string `json:"state"`
	// Message says what is the matter.
	Message string `json:"message,omitempty"`
	// Objects are objects on the cluster that are not as they should be.
	Objects []Object `json:"objects,omitempty"`
	// More says that there are more objects than those.
	More bool `json:"more,omitempty"`
}

// Object is an object on a cluster.
type Object struct {
	fleet.ObjectRef `json:",inline"`
	// Message says what is the matter.
	Message string `json:"message"`
	// Fields are those that differ.
	Fields []fleet.FieldDrift `json:"fields,omitempty"`
	// By are the programs that made them differ, where that is known.
	By []fleet.FieldOwner `json:"by,omitempty"`
}
