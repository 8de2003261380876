package soak_test

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

var mutantSeeds = flag.String("mutants", "", "number of seeds to run each old bug through; empty only looks whether they can be put back")

// mutant is an old bug: the text that mends it, and what was there before.
type mutant struct {
	name, file string
	mended     string
	broken     string
}

// mutants are put back, one at a time, to see that the net catches them.
var mutants = []mutant{
	{
		"an agent that was killed between removing and telling never tells", "internal/agent/deploy/status.go",
		"	return &fleet.RemovalStatus{Done: true}\n}", "	return j.removal\n}",
	},
	{
		"what is about to be applied is not written down before", "internal/agent/deploy/release.go",
		"	if err := c.save(ctx, j.name, next); err != nil {\n		return err\n	}\n	c.update(j.name, func(j *job) { j.stale = false })", "	c.update(j.name, func(j *job) { j.stale = false })",
	},
	{
		"the hub's word of earlier is taken for its last one", "internal/agent/deploy/desired.go",
		"return r != nil && r.UID == string(d.UID) && d.Generation < r.Generation", "return r != nil && false",
	},
	{
		"what failed counts as applied", "internal/agent/deploy/apply.go",
		"	if failed == nil && len(result.Failures) == 0 {\n		then(&done)", "	if true {\n		then(&done)",
	},
	{
		"a deployment that the hub does not have is removed", "internal/agent/deploy/situation.go",
		"d := Decision{Situation: Kept}", "d := Decision{Situation: Marked, Action: Remove}",
	},
	{
		"a report that was lost is not repeated", "internal/agent/deploy/deploy.go",
		"		return c.unreported(j.name)\n", "		return d.After\n",
	},
	{
		"what a killed hub has created stands in the way of the next one", "internal/hub/cluster/register/controller.go",
		"case err == nil, apierrors.IsAlreadyExists(err):", "case err == nil:",
	},
	{
		"a deployment that was removed is kept although it is wanted again", "internal/deployment/deployment.go",
		"case removed(have), !have.DeletionTimestamp.IsZero() && have.Spec.Removal == nil:", "case removed(have):",
	},
}

// TestMutants puts old bugs back. Without -mutants it only looks whether they
// still can be.
func TestMutants(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			file := filepath.Join(root, m.file)
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(text), m.mended); n != 1 {
				t.Fatalf("%s has %d times what is to be broken: write the mutant anew for the code as it is now:\n%s", m.file, n, m.mended)
			}
			if *mutantSeeds == "" {
				return
			}
			dir := t.TempDir()
			overlay := filepath.Join(dir, "overlay.json")
			write(t, filepath.Join(dir, "mutant.go"), []byte(strings.Replace(string(text), m.mended, m.broken, 1)))
			replace, err := json.Marshal(map[string]any{"Replace": map[string]string{file: filepath.Join(dir, "mutant.go")}})
			if err != nil {
				t.Fatal(err)
			}
			write(t, overlay, replace)
			m.caught(t, overlay)
		})
	}
}

// caught runs the seeds with the bug, and fails where they pass.
func (m mutant) caught(t *testing.T, overlay string) {
	program := filepath.Join(filepath.Dir(overlay), "soak.test")
	build := exec.Command("go", "test", "-c", "-overlay", overlay, "-o", program, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("the mutant does not build: %v\n%s", err, out)
	}
	run := exec.Command(program, "-test.failfast", "-test.run", "^(TestSeeds|TestHarmAtEachWrite|TestBackupTakesNothingBack)$", "-test.timeout", "8m", "-seeds", *mutantSeeds)
	run.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := run.CombinedOutput()
	if err == nil {
		t.Errorf("%s: nobody noticed", m.name)
		return
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "seed ") {
			t.Logf("caught by %s", strings.TrimSpace(line))
			return
		}
	}
	t.Errorf("it ended with %v, and no seed says why:\n%s", err, out)
}

func write(t *testing.T, file string, data []byte) {
	t.Helper()
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
