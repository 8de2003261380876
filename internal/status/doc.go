// Package status turns the agents' reports on single deployments into what
// people read on a Bundle, a GitRepo, a Cluster and a ClusterGroup.
//
// StateOf and ContributionOf read one deployment. A Board holds the
// contributions of a whole fleet and keeps every sum up to date: one event
// costs microseconds, however many deployments there are, because ready
// deployments are only counted and the others are kept sorted. A roll-up holds
// no time that moves by itself: equal facts give equal statuses.
//
// The states and the form of the messages are those of Rancher Fleet. Different
// on purpose:
//
//   - a deployment whose cluster is silent is Offline, in no roll-up ready;
//   - a deployment whose newest content is staged, paused or held back is
//     OutOfSync everywhere, on the Bundle too;
//   - an error that the agent will not retry reads ErrApplied, not NotReady;
//   - a GitRepo is ready on a cluster if all of its deployments there are.
package status
