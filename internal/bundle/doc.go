// Package bundle turns a snapshot of a repository into drafts of bundles: it
// finds the directories that are bundles, reads their fleet.yaml, collects their
// files and lays the settings of the GitRepo over them.
//
// The package is pure: it reads nothing but the snapshot.
package bundle
