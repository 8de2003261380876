package bundle

import (
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/source"
)

// Reasons of errors; all but the last are of those that a human must mend.
const (
	reasonEmpty     = "EmptyRepository"
	reasonPath      = "PathNotFound"
	reasonNothing   = "NothingToDeploy"
	reasonFleetYAML = "InvalidFleetYAML"
	reasonFile      = "InvalidFile"
	reasonName      = "DuplicateName"
	reasonTooLarge  = "BundlesTooLarge"

	reasonUnreadable = "UnreadablePath"
)

// Scan returns the bundles of a snapshot, sorted by path. A directory that is
// broken is a draft with an error, and its neighbours go on.
//
// Where Scan returns an error, the drafts beside it are good but not all there
// are: they may be deployed, but nothing may be removed for not being among
// them. The same holds while any draft has an error.
func Scan(tree source.Tree, in Input) ([]Draft, error) {
	if err := checkFiles(tree); err != nil {
		return nil, err
	}
	places, err := find(tree, in)
	var drafts []Draft
	var bytes int64
	for _, p := range places {
		if draft, ok := build(tree, in, p, &bytes); ok {
			drafts = append(drafts, draft)
		}
	}
	slices.SortStableFunc(drafts, func(a, b Draft) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Name, b.Name))
	})
	markTwins(drafts)
	if len(drafts) == 0 && err == nil {
		err = nothing(in)
	}
	return drafts, err
}

// checkFiles refuses a snapshot without files.
func checkFiles(tree source.Tree) error {
	entries, err := fs.ReadDir(tree.FS, ".")
	if err != nil {
		return fmt.Errorf("cannot read the files of commit %s: %w", tree.Commit, err)
	}
	if len(entries) > 0 {
		return nil
	}
	return fault.Stall(reasonEmpty, fmt.Errorf("commit %s of the repository has no files; commit and push something to deploy", tree.Commit))
}

// nothing is the error of paths that exist and hold nothing.
func nothing(in Input) error {
	paths := in.Paths
	for _, b := range in.Bundles {
		paths = append(paths, b.Base)
	}
	if len(paths) == 0 {
		paths = []string{"/"}
	}
	return fault.Stall(reasonNothing, fmt.Errorf(
		"no resource found at the following paths to deploy: %s; a bundle is a directory with a fleet.yaml or with Kubernetes YAML files", strings.Join(paths, ", ")))
}

// markTwins refuses bundles that have one name between them: neither may win by
// chance.
func markTwins(drafts []Draft) {
	byName := map[string][]int{}
	for i, d := range drafts {
		byName[d.Name] = append(byName[d.Name], i)
	}
	for name, twins := range byName {
		if len(twins) < 2 {
			continue
		}
		var places []string
		for _, i := range twins {
			places = append(places, fmt.Sprintf("%q", drafts[i].Path))
		}
		for _, i := range twins {
			err := fault.Stall(reasonName, fmt.Errorf(
				"the directories %s all make a bundle named %q; set another name in the fleet.yaml of all but one", strings.Join(places, ", "), name))
			drafts[i].Err = cmp.Or(drafts[i].Err, err)
		}
	}
}
