package bundle

import (
	"cmp"
	"errors"
	"slices"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/source"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// DefaultMaxBytes is how many bytes the files of all bundles of one GitRepo may
// have, unless the hub is told otherwise.
const DefaultMaxBytes = 256 << 20

// Input says where to look for bundles, and what the GitRepo sets on all of
// them.
type Input struct {
	// RepoName is the name of the GitRepo; names of bundles begin with it.
	RepoName string
	// Paths are directories or patterns of directories; empty means the root.
	Paths []string
	// Bundles, where there are any, take the place of Paths: one bundle each,
	// without looking further down.
	Bundles []fleet.BundlePath

	// ServiceAccount, where set, is the account of every bundle.
	ServiceAccount string
	// TargetNamespace, where set, is the namespace of every bundle.
	TargetNamespace string
	// Paused pauses every bundle.
	Paused bool
	// KeepResources keeps what every bundle deployed when it goes.
	KeepResources bool
	// DeleteNamespace deletes the target namespace of every bundle that goes.
	DeleteNamespace bool
	// CorrectDrift, where enabled, counts for every bundle.
	CorrectDrift *fleet.CorrectDrift
	// ForceSyncGeneration, where positive, counts for every bundle.
	ForceSyncGeneration int64
	// Labels are set on every bundle that does not say otherwise.
	Labels map[string]string
	// Targets are the clusters that bundles go to; empty means the cluster
	// group "default".
	Targets []fleet.GitTarget

	// MaxBytes is how many bytes the files of all bundles may have together: they
	// are in memory at once. 0 is no bound, and DefaultMaxBytes what a hub has that
	// is told nothing.
	MaxBytes int64

	// Strict makes errors of warnings.
	Strict bool
}

// Draft is a bundle as a directory describes it.
type Draft struct {
	// Name is the name of the bundle.
	Name string
	// Path is the directory in the repository; "." is the root.
	Path string
	// Config is the file in the repository that was read for fleet.yaml; empty
	// where there is none.
	Config string
	// Labels are those of the fleet.yaml and of the GitRepo.
	Labels map[string]string
	// Spec has the customizations and then the targets of the GitRepo in its
	// targets, and the latter in its restrictions. Values of valuesFiles are
	// merged in. It has no resources: see Files.
	Spec fleet.BundleSpec
	// Files are the files of the bundle, sorted by path.
	Files []source.File
	// SourceDigest is the digest of Files.
	SourceDigest string
	// Warnings are for the author of the bundle.
	Warnings []fault.Note
	// Err is why the directory cannot become a bundle; then only Name and Path
	// can be relied on, and Name is a guess where fleet.yaml cannot be read.
	Err error
}

// BeyondBound tells whether Input.MaxBytes has left out the files of a draft.
func BeyondBound(drafts []Draft) bool {
	return slices.ContainsFunc(drafts, func(d Draft) bool {
		_, beyond := errors.AsType[beyondBound](d.Err)
		return beyond
	})
}

// SetFiles replaces the files of a draft, which are sorted here.
func (d *Draft) SetFiles(files []source.File) {
	slices.SortStableFunc(files, func(a, b source.File) int { return cmp.Compare(a.Path, b.Path) })
	d.Files, d.SourceDigest = files, source.Digest(files)
}
