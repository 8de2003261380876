package lab_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/flotilla-sh/flotilla/internal/lab"
	"github.com/flotilla-sh/flotilla/internal/lab/gitserver"
	"github.com/flotilla-sh/flotilla/internal/lab/labtest"
)

// TestMain lets the test binary be the programs that a lab needs besides the
// control plane, named by its arguments or by a link to it.
func TestMain(m *testing.M) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch args := os.Args; {
	case filepath.Base(args[0]) == "flotilla-hub":
		err = standInHub(ctx, args[1:])
	case filepath.Base(args[0]) == "flotilla-agent":
		<-ctx.Done()
	case len(args) > 2 && args[1] == "lab" && args[2] == "supervise":
		err = lab.Supervise(ctx, os.Stdin, os.NewFile(lab.ReportsFD, "reports"))
	case len(args) > 2 && args[1] == "lab" && args[2] == "git-server":
		err = gitserver.ListenAndServe(ctx, args[4], args[6])
	case len(args) > 2 && args[1] == "lab" && args[2] == "up":
		_, err = lab.Up(ctx, lab.Options{Dir: args[3], Programs: lab.Programs{ControlPlane: args[4], Flotilla: args[0]}})
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// programs returns the programs of a lab, or skips the test.
func programs(t *testing.T) lab.Programs {
	t.Helper()
	controlPlane := labtest.Program(t, "controlplane")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	links := t.TempDir()
	for _, name := range []string{"flotilla-hub", "flotilla-agent"} {
		if err := os.Symlink(self, filepath.Join(links, name)); err != nil {
			t.Fatal(err)
		}
	}
	return lab.Programs{
		ControlPlane: controlPlane,
		Flotilla:     self,
		Hub:          filepath.Join(links, "flotilla-hub"),
		Agent:        filepath.Join(links, "flotilla-agent"),
	}
}

// startLab starts a lab that ends with the test.
func startLab(t *testing.T, o lab.Options) *lab.Lab {
	t.Helper()
	o.Progress = func(step lab.Step) { t.Logf("%.1fs %s", step.Elapsed.Seconds(), step.Text) }
	l, err := lab.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Stop(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// cluster calls the lab's own kubectl on one of its clusters.
type cluster struct{ kubectl, kubeconfig string }

func (c cluster) run(t *testing.T, args ...string) string {
	t.Helper()
	out, err := c.try(args...)
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (c cluster) try(args ...string) (string, error) {
	cmd := exec.Command(c.kubectl, append([]string{"--kubeconfig", c.kubeconfig}, args...)...)
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// processesIn returns the processes whose command line names a directory.
func processesIn(t *testing.T, dir string) []string {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, line := range lines {
		data, err := os.ReadFile(line)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(line)))
		if err == nil && pid != os.Getpid() && bytes.Contains(data, []byte(dir)) {
			found = append(found, strconv.Itoa(pid)+" "+string(bytes.ReplaceAll(data, []byte{0}, []byte{' '})))
		}
	}
	return found
}

// nothingLeft checks that a lab is gone, soon.
func nothingLeft(t *testing.T, dir string) {
	t.Helper()
	labtest.Eventually(t, "the lab", func() error {
		if found := processesIn(t, dir); len(found) > 0 {
			return fmt.Errorf("processes are left: %s", strings.Join(found, "\n"))
		}
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("the directory %s is left: %v", dir, err)
		}
		return nil
	})
}
