// Package observe tells how the objects of a bundle fare on the cluster: whether
// they are ready, and whether they still are as they were applied.
//
// It watches metadata only. After an apply the API server says which fields are
// ours; others can only make that set smaller. Only where the set has become
// smaller, the generation has moved by a write that was not ours, or an object
// is gone, is the object read, and a dry run of the apply gives the exact
// difference. Defaulting, webhooks, status and the fields of others are thereby
// no drift.
//
// What a watch sees of an object is in seen.go, what that calls for in judge.go,
// what is known of all deployments in tracker.go, and what is asked of it, and
// told to it after a look, in targets.go.
package observe
