package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Step is something that is done.
type Step struct {
	// Elapsed is the time since the lab began to start.
	Elapsed time.Duration `json:"elapsed"`
	// Text says what is done.
	Text string `json:"text"`
}

// Lab is a lab whose supervisor is this process.
type Lab struct {
	options  Options
	made     string
	began    time.Time
	launcher *launcher
	ports    *ports
	control  *controlServer
	hub      *cluster
	spokes   map[string]*cluster
	gitPort  string
	units    []*unit

	// attached labs are part of a program that is more than their supervisor.
	attached bool
	// downAsked is closed when someone asks for the end of the lab.
	downAsked chan struct{}
	downOnce  sync.Once
	stopOnce  sync.Once
	stopErr   error

	// mu guards what follows, and the state file.
	mu       sync.Mutex
	ready    bool
	gone     bool
	keepLogs bool
}

// Start brings a lab up and returns when all of it is ready. When it fails,
// or ctx ends meanwhile, nothing is left of the lab. The lab lives until Stop
// is called or this process ends in whatever way; it does not end with ctx.
func Start(ctx context.Context, o Options) (*Lab, error) {
	return start(ctx, o, true)
}

func start(ctx context.Context, o Options, attached bool) (*Lab, error) {
	l, err := newLab(o, attached)
	if err != nil {
		return nil, err
	}
	if err := l.bringUp(ctx); err != nil {
		return nil, errors.Join(err, l.Stop())
	}
	l.mu.Lock()
	l.ready = true
	l.mu.Unlock()
	return l, l.save()
}

// bringUp starts everything, as much of it at once as possible.
func (l *Lab) bringUp(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return l.startUnit(ctx, Git, "Git server at "+l.gitURL()) })
	hubReady := make(chan struct{})
	group.Go(func() error {
		if err := l.startHub(ctx); err != nil {
			return err
		}
		close(hubReady)
		return nil
	})
	for _, spoke := range l.options.Spokes {
		group.Go(func() error { return l.startSpoke(ctx, spoke, hubReady) })
	}
	return group.Wait()
}

func (l *Lab) startHub(ctx context.Context) error {
	if err := l.startUnit(ctx, Hub, "hub ready at "+l.hub.server); err != nil {
		return err
	}
	if !l.options.Products {
		return nil
	}
	return l.installHub(ctx)
}

func (l *Lab) startSpoke(ctx context.Context, spoke Spoke, hubReady <-chan struct{}) error {
	if err := l.startUnit(ctx, spoke.Name, "spoke "+spoke.Name+" ready at "+l.spokes[spoke.Name].server); err != nil {
		return err
	}
	if !l.options.Products {
		return nil
	}
	select {
	case <-hubReady:
		return l.installAgent(ctx, spoke)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *Lab) startUnit(ctx context.Context, name, done string) error {
	u, err := l.unit(name)
	if err != nil {
		return err
	}
	if err := u.start(ctx); err != nil {
		return err
	}
	l.step(done)
	return nil
}

// StartUnit starts a part of the lab that was stopped, and returns when it
// is ready.
func (l *Lab) StartUnit(ctx context.Context, name string) error {
	u, err := l.unit(name)
	if err != nil {
		return err
	}
	return u.start(ctx)
}

// StopUnit stops a part of the lab; its data is kept.
func (l *Lab) StopUnit(name string) error {
	u, err := l.unit(name)
	if err != nil {
		return err
	}
	u.stop()
	return nil
}

// Stop ends all processes of the lab and removes its directory.
func (l *Lab) Stop() error {
	l.stopOnce.Do(func() { l.stopErr = l.tearDown() })
	return l.stopErr
}

// tearDown kills instead of asking: what the processes would still write is
// about to be removed.
func (l *Lab) tearDown() error {
	l.mu.Lock()
	l.gone = true
	status, keep := l.statusLocked(), l.keepLogs
	l.mu.Unlock()
	if l.control != nil {
		l.control.close()
	}
	for _, u := range l.units {
		u.close()
	}
	l.launcher.close()
	err := clearDir(status, keep)
	l.ports.release()
	return err
}

// Status describes the lab.
func (l *Lab) Status() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.statusLocked()
}

func (l *Lab) statusLocked() Status {
	status := Status{
		Dir:        l.options.Dir,
		Ready:      l.ready,
		Supervisor: ProcessStatus{Name: "supervisor", PID: os.Getpid(), StartTime: startTime(os.Getpid())},
		Attached:   l.attached,
		Made:       l.made,
		Kubectl:    l.path("bin", "kubectl"),
		Git:        GitStatus{URL: l.gitURL(), Root: l.path("git")},
	}
	if l.hub != nil {
		status.Hub = l.hub.status(nil)
	}
	for _, spoke := range l.options.Spokes {
		if c, ok := l.spokes[spoke.Name]; ok {
			status.Spokes = append(status.Spokes, c.status(spoke.Labels))
		}
	}
	for _, u := range l.units {
		status.Units = append(status.Units, u.status())
	}
	return status
}

// save writes the state file, as long as there is a lab.
func (l *Lab) save() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone {
		return nil
	}
	return l.statusLocked().write()
}

func (l *Lab) add(name string, setUp func(context.Context) error, programs ...program) {
	l.units = append(l.units, &unit{name: name, lab: l, setUp: setUp, programs: programs, state: Stopped})
}

func (l *Lab) unit(name string) (*unit, error) {
	var names []string
	for _, u := range l.units {
		if u.name == name {
			return u, nil
		}
		names = append(names, u.name)
	}
	return nil, fmt.Errorf("the lab has no part called %q; there are: %s", name, strings.Join(names, ", "))
}

func (l *Lab) step(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.options.Progress != nil && !l.gone {
		l.options.Progress(Step{Elapsed: time.Since(l.began), Text: text})
	}
}

func (l *Lab) gitURL() string {
	return "http://" + net.JoinHostPort("127.0.0.1", l.gitPort)
}

func (l *Lab) path(elements ...string) string {
	return filepath.Join(append([]string{l.options.Dir}, elements...)...)
}
