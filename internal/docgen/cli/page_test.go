package main

import (
	"os"
	"strings"
	"testing"

	"github.com/flotilla-sh/flotilla/internal/cli"
)

// TestUpToDate fails where a command was changed and make generate not run.
func TestUpToDate(t *testing.T) {
	have, err := os.ReadFile("../../../docs/reference/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != generated() {
		t.Error("docs/reference/cli.md is not up to date: run make generate")
	}
}

// TestEveryCommandHasAnExample, since people read that first.
func TestEveryCommandHasAnExample(t *testing.T) {
	for _, cmd := range commands(cli.Commands(cli.Env{})) {
		if cmd.Example == "" && !strings.HasPrefix(cmd.CommandPath(), "flotilla completion") {
			t.Errorf("%s has none", cmd.CommandPath())
		}
	}
}
