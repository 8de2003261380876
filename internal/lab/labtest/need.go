package labtest

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/flotilla-sh/flotilla/internal/lab"
)

const (
	// NeedsLab is the environment variable by which "make test" says that all
	// programs are built: a test that misses one fails then, where it would be
	// left out.
	NeedsLab = "FLOTILLA_NEEDS_LAB"

	// patience is how long a condition may take to come true: a machine that is
	// busy takes long.
	patience = 2 * time.Minute
	// each is how often it is looked at.
	each = 20 * time.Millisecond
)

var bin = flag.String("bin", filepath.Join(root(), "bin"), "directory of the built programs")

// root is the directory of the module that is tested.
func root() string {
	dir, err := filepath.Abs(".")
	for err == nil && dir != "/" {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		dir = filepath.Dir(dir)
	}
	return "."
}

// needed are the programs without which no lab starts; flotilla is its Git
// server.
var needed = []string{"controlplane", "flotilla"}

// Bin is the directory of the built programs.
func Bin() string { return *bin }

// Skip leaves a test out that needs a real API server, where it cannot have
// one, or was told to be short.
func Skip(t testing.TB) {
	t.Helper()
	for _, name := range needed {
		Program(t, name)
	}
}

// Program returns the path of one program, or leaves the test out as Skip does.
func Program(t testing.TB, name string) string {
	t.Helper()
	switch err := missing(name); {
	case err == nil:
	case os.Getenv(NeedsLab) != "" && !errors.Is(err, errShort):
		t.Fatalf("%v, and %s says that it is there", err, NeedsLab)
	default:
		t.Skip(err)
	}
	return filepath.Join(*bin, name)
}

var errShort = errors.New("a real API server is not for -short")

// missing tells why a program cannot be used.
func missing(name string) error {
	if testing.Short() {
		return errShort
	}
	if _, err := os.Stat(filepath.Join(*bin, name)); err != nil {
		return fmt.Errorf("needs a program of the lab: run `make build controlplane` first: %w", err)
	}
	return nil
}

// Start starts a lab that ends with the test, or leaves the test out as Skip
// does.
func Start(t testing.TB, spokes ...lab.Spoke) *lab.Lab {
	t.Helper()
	Skip(t)
	l, err := lab.Start(t.Context(), lab.Options{
		Dir: filepath.Join(t.TempDir(), "lab"), Programs: lab.ProgramsIn(*bin), Spokes: spokes,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Stop() })
	return l
}

// Eventually waits until check finds nothing wrong, with the patience that a
// busy machine needs.
func Eventually(t testing.TB, what string, check func() error) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(each) {
		err := check()
		switch {
		case err == nil:
			return
		case time.Now().After(deadline) || t.Context().Err() != nil:
			t.Fatalf("%s: not within %s: %v", what, patience, err)
		}
	}
}
