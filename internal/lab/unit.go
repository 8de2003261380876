package lab

import (
	"context"
	"errors"
	"sync"
)

// unit is a part of the lab that is stopped and started as a whole.
type unit struct {
	name string
	lab  *Lab
	// setUp is done after each start, before the unit counts as ready; it
	// may be nil.
	setUp    func(context.Context) error
	programs []program

	// moving lets one start or stop happen at a time.
	moving sync.Mutex
	// mu guards the rest.
	mu        sync.Mutex
	processes []*process
	state     State
	closed    bool
}

// errEnding is what a part gets that is started while the lab ends.
var errEnding = errors.New("the lab is being taken down")

// start runs the programs in order, each once the one before it is ready. A
// unit that does not come up is stopped again.
func (u *unit) start(ctx context.Context) error {
	u.moving.Lock()
	defer u.moving.Unlock()
	if u.current() == Running {
		return nil
	}
	u.halt()
	u.set(Starting)
	if err := u.launch(ctx); err != nil {
		u.halt()
		u.set(Stopped)
		return err
	}
	u.set(Running)
	return nil
}

func (u *unit) launch(ctx context.Context) error {
	for _, p := range u.programs {
		running, err := u.lab.launcher.run(p, u.lab.path("logs"), u.lab.path("home"))
		if err != nil {
			return err
		}
		if err := u.adopt(running); err != nil {
			return err
		}
		if err := running.waitReady(ctx); err != nil {
			return err
		}
	}
	if u.setUp == nil {
		return nil
	}
	return u.setUp(ctx)
}

// adopt makes a process part of the unit, unless the unit was closed while
// the process started.
func (u *unit) adopt(p *process) error {
	u.mu.Lock()
	closed := u.closed
	u.processes = append(u.processes, p)
	u.mu.Unlock()
	go u.watch(p)
	if closed {
		return errEnding
	}
	return nil
}

// watch records that a process ended by itself.
func (u *unit) watch(p *process) {
	<-p.done
	if u.current() == Running {
		u.set(Failed)
	}
}

func (u *unit) stop() {
	u.moving.Lock()
	defer u.moving.Unlock()
	u.set(Stopped)
	u.halt()
}

// halt stops the processes without a word about the state.
func (u *unit) halt() {
	stopAll(u.all())
	u.mu.Lock()
	u.processes = nil
	u.mu.Unlock()
	_ = u.lab.save() // the next change tries again
}

// close kills the unit for good, even while it is being started.
func (u *unit) close() {
	u.mu.Lock()
	u.closed = true
	u.mu.Unlock()
	killAll(u.all())
	u.moving.Lock()
	defer u.moving.Unlock()
	killAll(u.all())
}

func (u *unit) all() []*process {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append([]*process(nil), u.processes...)
}

func (u *unit) current() State {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.state
}

func (u *unit) set(state State) {
	u.mu.Lock()
	u.state = state
	u.mu.Unlock()
	_ = u.lab.save() // the next change tries again
}

// status is what others see of the unit.
func (u *unit) status() UnitStatus {
	u.mu.Lock()
	defer u.mu.Unlock()
	status := UnitStatus{Name: u.name, State: u.state}
	for _, p := range u.processes {
		status.Processes = append(status.Processes, ProcessStatus{
			Name: p.program.name, PID: p.pid, StartTime: p.started, Log: p.log,
		})
	}
	return status
}
