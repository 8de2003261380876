// Command flotilla is the command line of Flotilla.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/go-logr/logr"
	"golang.org/x/term"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flotilla-sh/flotilla/internal/cli"
	"github.com/flotilla-sh/flotilla/internal/render/worker"
)

// version is set by the linker in a release.
var version string

func main() {
	if len(os.Args) > 1 && os.Args[1] == worker.Command {
		os.Exit(renderWorker())
	}
	os.Exit(run())
}

// renderWorker is the process that renders for "flotilla render".
func renderWorker() int {
	if err := worker.Main(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "flotilla:", err)
		return cli.ExitFailed
	}
	return cli.ExitOK
}

func run() int {
	// What went wrong is told by the commands; libraries would tell it again.
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal ends the program at once.
	context.AfterFunc(ctx, stop)
	return cli.Run(ctx, cli.Env{
		Args:     os.Args[1:],
		In:       os.Stdin,
		Out:      os.Stdout,
		Err:      os.Stderr,
		Colour:   terminal() != nil && os.Getenv("NO_COLOR") == "",
		Terminal: terminal(),
		Version:  version,
		Programs: programs(),
		LabDir:   labDir(),
	})
}

// terminal measures the terminal that the output is; nil where it is none.
func terminal() func() (width, height int) {
	out := int(os.Stdout.Fd()) //nolint:gosec // file descriptors are small
	if !term.IsTerminal(out) {
		return nil
	}
	return func() (int, int) {
		width, height, err := term.GetSize(out)
		if err != nil {
			return 0, 0
		}
		return width, height
	}
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
