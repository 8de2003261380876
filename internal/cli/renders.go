package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/flotilla-sh/flotilla/internal/bundle"
	"github.com/flotilla-sh/flotilla/internal/render"
	"github.com/flotilla-sh/flotilla/internal/render/worker"
)

// renderingFlags are common to the commands that render a directory.
type renderingFlags struct {
	sourceFlags
	labels      map[string]string
	repo        string
	kubeVersion string
	apis        []string
	timeout     time.Duration
	strict      bool
}

func (f *renderingFlags) add(cmd *cobra.Command, labels, strict string) {
	f.sourceFlags.add(cmd)
	set := cmd.Flags()
	set.StringToStringVarP(&f.labels, "label", "l", nil, labels+" as `key=value`; may be repeated")
	set.StringVar(&f.repo, "gitrepo", "", "name of the GitRepo, with which the names of bundles begin (default: none)")
	set.StringVar(&f.kubeVersion, "kube-version", "", "Kubernetes version to render for (default "+newestKubernetes()+")")
	set.StringSliceVarP(&f.apis, "api-versions", "a", nil, "what is served beside Kubernetes' own, as `group/version` or group/version/Kind, with :Cluster after a kind without namespaces; may be repeated")
	set.DurationVar(&f.timeout, "timeout", time.Minute, "how long one render may take")
	set.BoolVar(&f.strict, "strict", false, strict)
	for _, name := range []string{"label", "gitrepo", "kube-version", "api-versions", "timeout"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
}

// work is a directory that is being rendered.
type work struct {
	*directories
	scan   bundle.Input
	offers render.Capabilities
	pool   *worker.Pool
	// prefix is what the user typed for the root, where it is not the current
	// directory.
	prefix string
}

// open begins the work on a directory, which is to be closed. kubeVersion
// counts where no flag says one.
func (f *renderingFlags) open(name, kubeVersion string) (*work, error) {
	if f.timeout <= 0 {
		return nil, usagef("--timeout %s: a render needs some time", f.timeout)
	}
	if f.kubeVersion != "" {
		kubeVersion = f.kubeVersion
	}
	if err := f.check([]string{name}); err != nil {
		return nil, err
	}
	offers, err := capabilities(kubeVersion, f.apis)
	if err != nil {
		return nil, err
	}
	dirs, err := openDirectories([]string{name})
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot find this program to start renders with: %w", err)
	}
	w := &work{
		directories: dirs, scan: f.scanInput(dirs, f.repo, name), offers: offers,
		pool: worker.NewPool(worker.Options{Executable: self, Deadline: f.timeout}),
	}
	if len(dirs.paths) == 0 {
		w.prefix = filepath.ToSlash(name)
	}
	return w, nil
}

func (w *work) close() { w.pool.Close() }

// shown returns a path of the tree as the user may type it.
func (w *work) shown(name string) string { return path.Join(w.prefix, name) }

// errInterrupted says that a signal has ended the work.
var errInterrupted = errors.New("interrupted")

// interrupted returns errInterrupted where a signal has come. Errors that came
// of it say nothing more.
func interrupted(ctx context.Context) error {
	if ctx.Err() != nil {
		return errInterrupted
	}
	return nil
}
