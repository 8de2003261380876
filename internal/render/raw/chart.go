package raw

import (
	"fmt"
	"strings"

	"github.com/flotilla-sh/flotilla/internal/source"
)

// commitLength is how much of a commit stands in a version.
const commitLength = 12

// Chart returns the files of a chart for the templates of a bundle that has no
// Chart.yaml.
func Chart(bundle, commit string, templates []source.File) []source.File {
	if commit == "" {
		commit = "0"
	}
	chart := fmt.Sprintf("apiVersion: v2\nname: %q\nversion: %q\n", chartName(bundle), Version(commit))
	return append([]source.File{{Path: "Chart.yaml", Data: []byte(chart)}}, templates...)
}

// Version returns the version of a synthesized chart.
func Version(commit string) string {
	if len(commit) > commitLength {
		commit = commit[:commitLength]
	}
	return "v0.0.0+git-" + commit
}

// chartName is the bundle's name; a chart must have one.
func chartName(bundle string) string {
	if name := strings.TrimSpace(bundle); name != "" {
		return name
	}
	return "bundle"
}
