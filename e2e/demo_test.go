package e2e

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flotilla-sh/flotilla/internal/demo"
)

// TestDemo runs what "make demo" runs: every step of it is a test.
func TestDemo(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := demo.Run(t.Context(), demo.Options{
		Source: "..", Dir: filepath.Join(t.TempDir(), "demo"), Flotilla: filepath.Join(bin, "flotilla"), Out: &out,
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, want := range []string{
		"apps/clock", `"red"`, "kubectl-patch", // the drift: object, live value, program
		"the digests are those of before", "Offline", "the lab is down",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the demo does not show %q:\n%s", want, out.String())
		}
	}
}
