package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const endless = `{{ range until 1000 }}{{ range until 1000 }}{{ range until 1000 }}{{ range until 1000 }}{{ end }}{{ end }}{{ end }}{{ end }}`

// TestInterrupted looks at what is left of a command that renders what never
// ends.
func TestInterrupted(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"one/Chart.yaml": "apiVersion: v2\nname: one\nversion: 1.0.0\n", "one/templates/a.yaml": endless, "one/fleet.yaml": "{}\n",
		"two/Chart.yaml": "apiVersion: v2\nname: two\nversion: 1.0.0\n", "two/templates/a.yaml": endless, "two/fleet.yaml": "{}\n",
	} {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, command := range []string{"lint", "render"} {
		t.Run(command, func(t *testing.T) {
			var errs bytes.Buffer
			c := exec.CommandContext(t.Context(), "flotilla", command, dir)
			c.Stderr = &errs
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			var children []int
			until(t, "it renders", func() bool { children = childrenOf(t, c.Process.Pid); return len(children) > 0 })
			if err := c.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			if err := c.Wait(); c.ProcessState.ExitCode() != ExitInterrupted {
				t.Errorf("it ended with %v", err)
			}
			if errs.String() != "error: interrupted\n" {
				t.Errorf("it said %q", errs.String())
			}
			for _, child := range children {
				if err := syscall.Kill(child, 0); !errors.Is(err, syscall.ESRCH) {
					t.Errorf("the child %d is still there: %v", child, err)
				}
			}
		})
	}
}

// until waits for a condition.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("in vain: %s", what)
		}
	}
}

// childrenOf returns the processes that a process has started.
func childrenOf(t *testing.T, pid int) []int {
	t.Helper()
	var out []int
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, _ := os.ReadFile(file) // the thread may have ended
		for field := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				out = append(out, child)
			}
		}
	}
	return out
}
