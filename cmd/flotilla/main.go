// Command flotilla is the command line of Flotilla.
package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"golang.org/x/term"

	"github.com/flotilla-sh/flotilla/internal/cli"
)

// version is set by the linker in a release.
var version string

func main() {
	os.Exit(run())
}

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal ends the program at once.
	context.AfterFunc(ctx, stop)
	return cli.Run(ctx, cli.Env{
		Args:     os.Args[1:],
		In:       os.Stdin,
		Out:      os.Stdout,
		Err:      os.Stderr,
		Colour:   term.IsTerminal(int(os.Stdout.Fd())) && os.Getenv("NO_COLOR") == "", //nolint:gosec // file descriptors are small
		Version:  version,
		Programs: programs(),
		LabDir:   labDir(),
	})
}

// programs is the directory of this program, where "make build" puts the
// others as well.
func programs() string {
	self, err := os.Executable()
	if err != nil {
		return "."
	}
	return filepath.Dir(self)
}

// labDir is in the home directory, so that "flotilla lab status" finds the
// lab from wherever it is called.
func labDir() string {
	home, err := os.UserHomeDir()
	if err != nil {
		home = os.TempDir()
	}
	return filepath.Join(home, ".flotilla", "lab")
}
