package chart

import (
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/flotilla-sh/flotilla/internal/fault"
)

// exact tells whether a version is one and no constraint.
func exact(version string) bool {
	_, err := semver.StrictNewVersion(strings.TrimPrefix(version, "v"))
	return err == nil
}

// pick returns the index of the version that is wanted: the very same text, or
// the highest that a constraint allows. Without one it is the highest that is
// no pre-release. Equal ones go by their order. It is -1 where there is none.
func pick(versions []string, wanted string) (int, error) {
	for i, v := range versions {
		if wanted != "" && strings.TrimPrefix(v, "v") == strings.TrimPrefix(wanted, "v") {
			return i, nil
		}
	}
	if wanted == "" {
		wanted = "*"
	}
	constraint, err := semver.NewConstraint(wanted)
	if err != nil {
		return -1, fault.Stall(ReasonInvalid, fmt.Errorf("helm.version is %q, which is neither a version nor a constraint such as ^1.2 or \">=1.2 <2\"", wanted))
	}
	best, at := (*semver.Version)(nil), -1
	for i, text := range versions {
		v, err := semver.NewVersion(text)
		if err == nil && constraint.Check(v) && (best == nil || v.GreaterThan(best)) {
			best, at = v, i
		}
	}
	return at, nil
}

// newest writes the highest versions for a message.
func newest(versions []string) string {
	at, err := pick(versions, ">=0-0")
	if err != nil || at < 0 {
		return "; it has none that is a version"
	}
	return fmt.Sprintf("; the newest there is %s", versions[at])
}
