// Package start is what flotilla-hub and flotilla-agent do alike before they
// run.
package start

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/flotilla-sh/flotilla/internal/render/worker"
)

// Main runs a command until it ends or is told to stop, or is one of the
// processes in which the program renders, and ends the program.
func Main(cmd *cobra.Command) {
	err := run(cmd)
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintf(os.Stderr, "%s: %v\n", cmd.Name(), err)
		os.Exit(1)
	}
	os.Exit(0)
}

func run(cmd *cobra.Command) error {
	if len(os.Args) > 1 && os.Args[1] == worker.Command {
		return worker.Main(os.Stdin, os.Stdout)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cmd.Args, cmd.SilenceUsage, cmd.SilenceErrors = cobra.NoArgs, true, true
	return cmd.ExecuteContext(ctx)
}

// Logger writes lines of a level and above, those of client-go too.
func Logger(level string) (logr.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return logr.Logger{}, fmt.Errorf("--log-level %q: must be debug, info, warn or error", level)
	}
	log := logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: l}))
	klog.SetLogger(log)
	return log, nil
}

// Connect finds the API server of a kubeconfig, or, where that is empty, of the
// cluster that the program runs in. What it asks bears the name of the program.
func Connect(kubeconfig, program string) (*rest.Config, error) {
	config, err := connect(kubeconfig)
	if err != nil {
		return nil, err
	}
	config.UserAgent = program
	return config, nil
}

func connect(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("no --kubeconfig was given, and this is no pod: %w", err)
		}
		return config, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig %s: %w", kubeconfig, err)
	}
	return config, nil
}

// Renderers returns the processes that render, which are this program.
func Renderers(o worker.Options) (*worker.Pool, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program, which renders in processes of its own: %w", err)
	}
	o.Executable = executable
	return worker.NewPool(o), nil
}
