package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// patience is how long a step waits for what it shows.
const patience = "180s"

// session is one run of the demo.
type session struct {
	Options
	// lab is the lab's directory, work the clone in which commits are made.
	lab, work string
	// digests are what the clusters ran before the commit.
	digests string
	started bool
	took    []took
}

// took is how long a step took.
type took struct {
	title string
	time  time.Duration
}

// run prints and runs a command; its output is shown.
func (s *session) run(ctx context.Context, name string, args ...string) error {
	s.say("$ %s", line(name, args))
	cmd := s.command(ctx, name, args)
	cmd.Stdout, cmd.Stderr = s.Out, s.Out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", line(name, args), errors.Join(err, ctx.Err()))
	}
	return nil
}

// output prints and runs a command and returns what it printed.
func (s *session) output(ctx context.Context, name string, args ...string) (string, error) {
	s.say("$ %s", line(name, args))
	cmd := s.command(ctx, name, args)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", line(name, args), err, strings.TrimSpace(errs.String()))
	}
	return strings.TrimSpace(string(out)), nil
}

func (s *session) kubectl(ctx context.Context, args ...string) error {
	return s.run(ctx, "kubectl", args...)
}

// await lets kubectl wait for something in the GitRepo's namespace. On a
// terminal a live table shows how it comes about.
func (s *session) await(ctx context.Context, object, condition string) error {
	args := []string{"-n", "fleet-default", "wait", object, "--for=" + condition, "--timeout=" + patience}
	if !s.Colour {
		return s.kubectl(ctx, args...)
	}
	end := s.live(ctx)
	out, err := s.command(ctx, "kubectl", args).CombinedOutput()
	end()
	s.say("$ %s\n%s", line("kubectl", args), strings.TrimSpace(string(out)))
	if err != nil {
		return fmt.Errorf("%s: %w", line("kubectl", args), errors.Join(err, ctx.Err()))
	}
	return nil
}

// live shows the table of clusters and bundles until it is told to end.
func (s *session) live(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	cmd := s.command(ctx, "flotilla", []string{"status", "--watch"})
	cmd.Stdout = s.Out
	if err := cmd.Start(); err != nil {
		cancel()
		return func() {}
	}
	return func() {
		cancel()
		// It was interrupted, and says so.
		_ = cmd.Wait()
	}
}

// git runs git in the clone.
func (s *session) git(ctx context.Context, args ...string) error {
	return s.run(ctx, "git", append([]string{"-C", s.work}, args...)...)
}

// table shows clusters and bundles.
func (s *session) table(ctx context.Context) error {
	return s.run(ctx, "flotilla", "status")
}

// command finds the demo's own programs and kubeconfig before any other.
func (s *session) command(ctx context.Context, name string, args []string) *exec.Cmd {
	path := name
	if name != "git" {
		path = filepath.Join(filepath.Dir(s.Flotilla), name)
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(os.Environ(),
		"KUBECONFIG="+s.kubeconfig("hub"),
		"GIT_AUTHOR_NAME=demo", "GIT_AUTHOR_EMAIL=demo@example.com",
		"GIT_COMMITTER_NAME=demo", "GIT_COMMITTER_EMAIL=demo@example.com",
		"GIT_CONFIG_NOSYSTEM=1")
	// A second Ctrl-C is not needed: children end with their context.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

func (s *session) kubeconfig(cluster string) string {
	return filepath.Join(s.lab, cluster+".kubeconfig")
}

// finish takes the lab down, unless it is to be kept.
func (s *session) finish(err error) error {
	if s.Keep && s.started {
		s.howToGoOn()
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if s.started {
		err = errors.Join(err, s.run(ctx, "flotilla", "lab", "down", "--state", s.lab))
	}
	return errors.Join(err, os.RemoveAll(s.Dir))
}

func (s *session) howToGoOn() {
	s.say(`
The lab is still running. To go on with it:

  export KUBECONFIG=%s PATH=%s:$PATH
  kubectl get gitrepos,bundles,clusters.fleet.cattle.io -A
  kubectl --kubeconfig %s get all -A
  cd %s                       # a clone to commit to and to push from
  flotilla status --watch
  flotilla lab down --state %s && rm -r %s`,
		s.kubeconfig("hub"), filepath.Dir(s.Flotilla), s.kubeconfig("prod"), s.work, s.lab, s.Dir)
}

func (s *session) summary() {
	s.heading("What took how long")
	for _, t := range s.took {
		s.say("%7.1fs  %s", t.time.Seconds(), t.title)
	}
}

func (s *session) heading(text string) {
	if s.Colour {
		text = "\x1b[1m" + text + "\x1b[0m"
	}
	s.say("\n%s", text)
}

func (s *session) say(format string, args ...any) {
	fmt.Fprintf(s.Out, format+"\n", args...)
}

// line is a command as a person would type it.
func line(name string, args []string) string {
	quoted := []string{name}
	for _, a := range args {
		if a == "" || strings.ContainsAny(a, " '\"{}$&|;<>()*?[]\n") {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		quoted = append(quoted, a)
	}
	return strings.Join(quoted, " ")
}
