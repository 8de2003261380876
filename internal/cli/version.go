package cli

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// versionInfo is what "flotilla version" tells.
type versionInfo struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func newVersion(g *globals) *cobra.Command {
	var format output
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program",
		Example: "  flotilla version\n  flotilla version -o json",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			info := versionOf(g.Version)
			return format.write(cmd.OutOrStdout(), info, info.text)
		},
	}
	addOutput(cmd, &format)
	return cmd
}

// versionOf asks the binary what it was built from.
func versionOf(release string) versionInfo {
	info := versionInfo{Version: release, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return info
	}
	if info.Version == "" {
		info.Version = build.Main.Version
	}
	for _, setting := range build.Settings {
		switch setting.Key {
		case "vcs.revision":
			info.Commit = setting.Value
		case "vcs.modified":
			info.Modified = setting.Value == "true"
		}
	}
	return info
}

func (v versionInfo) text(w io.Writer) error {
	commit := v.Commit
	if commit == "" {
		commit = "unknown"
	}
	if v.Modified {
		commit += ", with changes"
	}
	_, err := fmt.Fprintf(w, "flotilla %s (commit %s; %s, %s)\n", v.Version, commit, v.Go, v.Platform)
	return err
}
