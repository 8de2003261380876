package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/flotilla-sh/flotilla/internal/cli"
)

// flotilla runs the command line in a directory without a lab or programs.
func flotilla(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	dir := t.TempDir()
	code = cli.Run(t.Context(), cli.Env{
		Args: args, In: strings.NewReader(""), Out: &stdout, Err: &stderr, Version: "v1.2.3",
		Programs: filepath.Join(dir, "bin"), LabDir: filepath.Join(dir, "lab"),
	})
	return code, stdout.String(), stderr.String()
}

func TestExitCodes(t *testing.T) {
	tests := map[string]struct {
		args string
		code int
		err  string
	}{
		"version":                      {"version", cli.ExitOK, ""},
		"help":                         {"lab --help", cli.ExitOK, ""},
		"a command that is missing":    {"", cli.ExitOK, ""},
		"an unknown command":           {"labb", cli.ExitUsage, "did you mean lab?"},
		"an unknown command of lab":    {"lab upp", cli.ExitUsage, "did you mean up?"},
		"help on nothing":              {"help statuss", cli.ExitUsage, "did you mean status?"},
		"help on a command":            {"help lab up", cli.ExitOK, ""},
		"completion of nothing":        {"completion ksh", cli.ExitUsage, "unknown command"},
		"completion":                   {"completion bash", cli.ExitOK, ""},
		"a mirror of nothing":          {"lint ../../examples/raw --mirror foo", cli.ExitUsage, "upstream=mirror"},
		"a bad expression":             {"render . --helm-repo-url-regex (", cli.ExitFailed, "--helm-repo-url-regex"},
		"a file that is not there":     {"apply web -o - --password-file missing", cli.ExitFailed, "--password-file: open missing"},
		"an argument too many":         {"version please", cli.ExitUsage, "takes no arguments"},
		"an unknown flag":              {"lab up --spoke-count 3", cli.ExitUsage, "unknown flag: --spoke-count"},
		"an unknown format":            {"version -o toml", cli.ExitUsage, "use text, json or yaml"},
		"a spoke with a bad label":     {"lab up --spoke a=env", cli.ExitUsage, "NAME=label=value"},
		"both ways to say the spokes":  {"lab up --spokes 3 --spoke a", cli.ExitUsage, "use one of the two"},
		"fewer than no spokes":         {"lab up --spokes -1", cli.ExitUsage, "a number from 0 on"},
		"no part to stop":              {"lab stop", cli.ExitUsage, "takes one part"},
		"programs that are not built":  {"lab up", cli.ExitFailed, "make build"},
		"status where no lab is":       {"lab status", cli.ExitFailed, "flotilla lab up"},
		"down where no lab is":         {"lab down", cli.ExitFailed, "no lab here"},
		"stopping a part of no lab":    {"lab stop hub", cli.ExitFailed, "no lab here"},
		"completion, which is cobra's": {"completion bash", cli.ExitOK, ""},
	}
	for situation, test := range tests {
		t.Run(situation, func(t *testing.T) {
			code, _, errs := flotilla(t, strings.Fields(test.args)...)
			if code != test.code || !strings.Contains(errs, test.err) {
				t.Errorf("exit code %d, want %d; %q lacks %q", code, test.code, errs, test.err)
			}
		})
	}
}

func TestInterruptedDemoSaysSo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var errs bytes.Buffer
	code := cli.Run(ctx, cli.Env{
		Args: []string{"demo", "--source", "../..", "--dir", filepath.Join(t.TempDir(), "demo")}, Out: io.Discard, Err: &errs,
	})
	if code != cli.ExitInterrupted || errs.String() != "error: interrupted\n" {
		t.Errorf("exit code %d, %q", code, errs.String())
	}
}

func TestVersion(t *testing.T) {
	_, text, _ := flotilla(t, "version")
	if !strings.HasPrefix(text, "flotilla v1.2.3 (commit ") {
		t.Errorf("version prints %q", text)
	}
	_, out, _ := flotilla(t, "version", "-o", "json")
	var info struct{ Version, Go, Platform string }
	if err := json.Unmarshal([]byte(out), &info); err != nil || info.Version != "v1.2.3" || info.Go == "" || info.Platform == "" {
		t.Errorf("%v in %s", err, out)
	}
	if _, out, _ := flotilla(t, "version", "-o", "yaml"); !strings.Contains(out, "version: v1.2.3\n") {
		t.Errorf("yaml is %q", out)
	}
}

func TestCompletionOffersFormats(t *testing.T) {
	_, out, _ := flotilla(t, "__complete", "version", "-o", "")
	if !strings.Contains(out, "json\tfor programs") {
		t.Errorf("completion offers %q", out)
	}
}

// TestExamplesAreThere looks for the directories of the repository that examples
// name.
func TestExamplesAreThere(t *testing.T) {
	var look func(*cobra.Command)
	look = func(cmd *cobra.Command) {
		for _, word := range strings.Fields(cmd.Example) {
			dir, _, _ := strings.Cut(word, ":")
			if !strings.HasPrefix(dir, "examples/") && !strings.HasPrefix(dir, "bundles/") {
				continue
			}
			if _, err := os.Stat(filepath.Join("../..", dir)); err != nil {
				t.Errorf("an example of %q: %v", cmd.CommandPath(), err)
			}
		}
		for _, below := range cmd.Commands() {
			look(below)
		}
	}
	look(cli.Commands(cli.Env{}))
}

// TestEveryCommandIsExplained looks at all commands, hidden ones included.
func TestEveryCommandIsExplained(t *testing.T) {
	for _, path := range []string{"", "version", "schema", "lint", "render", "apply", "status", "demo", "lab", "lab up", "lab status", "lab stop", "lab start", "lab down", "lab git-server"} {
		_, out, _ := flotilla(t, append(strings.Fields(path), "--help")...)
		if strings.Contains(out, "[]") {
			t.Errorf("flotilla %s --help tells that the default is nothing:\n%s", path, out)
		}
		if !strings.Contains(out, "Examples:\n  flotilla") {
			t.Errorf("flotilla %s --help has no example:\n%s", path, out)
		}
	}
}
