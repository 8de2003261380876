package cli

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/flotilla-sh/flotilla/internal/render/worker"
	"github.com/flotilla-sh/flotilla/internal/source/chart/charttest"
)

var update = flag.Bool("update", false, "rewrite what scripts expect")

// TestMain makes the command flotilla of this program, for scripts and for the
// processes that it renders in.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == worker.Command {
		if err := worker.Main(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(ExitFailed)
		}
		os.Exit(ExitOK)
	}
	testscript.Main(m, map[string]func(){"flotilla": func() {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		defer stop()
		os.Exit(Run(ctx, Env{
			Args: os.Args[1:], In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Version: "v0.0.0-test",
		}))
	}})
}

// TestScripts runs the commands as a user does, without any cluster.
func TestScripts(t *testing.T) {
	charts := charttest.Serve(t)
	charts.Username, charts.Password = "me", "ahoy"
	charts.Add("app", "1.0.0")
	charts.Add("app", "1.1.0")
	testscript.Run(t, testscript.Params{
		Setup: func(env *testscript.Env) error {
			env.Setenv("CHARTS", charts.URL)
			env.Setenv("XDG_CACHE_HOME", env.WorkDir+"/.cache")
			return nil
		},
		Dir: "testdata/script", UpdateScripts: *update, RequireExplicitExec: true, RequireUniqueNames: true,
	})
}
