package lab

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// keep is the word by which Up lets the supervisor go on without it.
const keep = "keep\n"

// errAbandoned is why a supervisor gives up when Up has ended before the lab
// was ready.
var errAbandoned = errors.New("the command that started the lab has ended")

// report is a message from the supervisor to Up: one of its fields.
type report struct {
	Step  *Step  `json:"step,omitempty"`
	Error string `json:"error,omitempty"`
	Ready bool   `json:"ready,omitempty"`
}

// Up starts a lab in the background and returns when it is ready. Until then
// its supervisor holds on to this process by a pipe, so that nothing stays
// behind when this process is killed or ctx ends. The supervisor is
// "flotilla lab supervise".
func Up(ctx context.Context, o Options) (Status, error) {
	if err := supported(); err != nil {
		return Status{}, err
	}
	if err := o.resolve(); err != nil {
		return Status{}, err
	}
	if err := o.validate(); err != nil {
		return Status{}, err
	}
	if err := refuseForeign(o.Dir); err != nil {
		return Status{}, err
	}
	s, err := spawnSupervisor(o)
	if err != nil {
		return Status{}, fmt.Errorf("cannot start the lab's supervisor: %w", err)
	}
	stop := context.AfterFunc(ctx, s.letGo)
	defer stop()
	err = s.follow(o.Progress)
	if err == nil && stop() {
		err = s.release()
	}
	if err == nil && ctx.Err() == nil {
		return ReadStatus(o.Dir)
	}
	s.letGo()
	_ = s.cmd.Wait()
	if ctx.Err() != nil {
		return Status{}, errors.New("interrupted: what had been started is stopped and removed")
	}
	return Status{}, err
}

// supervisor is the background process as Up sees it.
type supervisor struct {
	cmd     *exec.Cmd
	leash   io.WriteCloser
	reports *os.File
}

func spawnSupervisor(o Options) (*supervisor, error) {
	reports, theirs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = theirs.Close() }()
	cmd := exec.Command(o.Programs.Flotilla, "lab", "supervise") //nolint:noctx // it outlives this process
	cmd.SysProcAttr = backgroundAttributes()
	cmd.Dir = "/"
	cmd.ExtraFiles = []*os.File{theirs}
	leash, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	encode(leash, o)
	return &supervisor{cmd: cmd, leash: leash, reports: reports}, nil
}

// follow passes the steps on until the lab is ready or has failed.
func (s *supervisor) follow(progress func(Step)) error {
	decoder := json.NewDecoder(s.reports)
	for {
		var message report
		if err := decoder.Decode(&message); err != nil {
			return errors.New("the lab's supervisor was killed")
		}
		switch {
		case message.Ready:
			return nil
		case message.Error != "":
			return errors.New(message.Error)
		case message.Step != nil && progress != nil:
			progress(*message.Step)
		}
	}
}

// release lets the supervisor go on without this process.
func (s *supervisor) release() error {
	if _, err := io.WriteString(s.leash, keep); err != nil {
		return fmt.Errorf("the lab's supervisor was killed: %w", err)
	}
	s.letGo()
	return s.cmd.Process.Release()
}

// letGo closes the leash: a supervisor that was not released takes the lab
// down.
func (s *supervisor) letGo() { _ = s.leash.Close() }

// ReportsFD is the file descriptor by which a supervisor reports to Up.
const ReportsFD = 3

// Supervise is the background process: it reads its options from in, starts
// the lab, and keeps it until it is told to take it down, ctx ends, or the
// process ends that the lab is bound to.
func Supervise(ctx context.Context, in io.Reader, reports *os.File) error {
	closeOnExec(reports)
	lines := bufio.NewReader(in)
	var o Options
	if line, err := lines.ReadBytes('\n'); err != nil {
		return err
	} else if err := json.Unmarshal(line, &o); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go watchLeash(lines, cancel)
	if err := endWith(ctx, o.WithPID, cancel); err != nil {
		encode(reports, report{Error: err.Error()})
		return err
	}
	o.Progress = func(step Step) { encode(reports, report{Step: &step}) }
	l, err := start(ctx, o, false)
	if err != nil {
		encode(reports, report{Error: err.Error()})
		return err
	}
	encode(reports, report{Ready: true})
	_ = reports.Close()
	select {
	case <-ctx.Done():
	case <-l.downAsked:
	}
	return l.Stop()
}

// watchLeash cancels when the leash ends without the word to go on.
func watchLeash(leash *bufio.Reader, cancel context.CancelCauseFunc) {
	if line, _ := leash.ReadString('\n'); line != keep {
		cancel(errAbandoned)
	}
}

// endWith cancels when a process ends; zero is none.
func endWith(ctx context.Context, pid int, cancel context.CancelCauseFunc) error {
	if pid == 0 {
		return nil
	}
	done, err := exited(ctx, pid)
	if err != nil {
		return err
	}
	go func() {
		select {
		case <-done:
			cancel(fmt.Errorf("process %d has ended", pid))
		case <-ctx.Done():
		}
	}()
	return nil
}

// downLimit is how long a supervisor may take to end its lab.
const downLimit = 20 * time.Second

// Down ends the lab in a directory, however it was started, and removes its
// data; keepLogs leaves the logs. It also clears up after a lab that was
// killed.
func Down(ctx context.Context, dir string, keepLogs bool) error {
	status, err := ReadStatus(dir)
	if err != nil {
		return err
	}
	if status.Supervisor.Alive() {
		if err := endSupervisor(ctx, status, keepLogs); err != nil {
			return err
		}
	}
	return clearDir(status, keepLogs)
}

// endSupervisor asks the supervisor to end its lab, and kills one that does
// not; the kernel then kills its children.
func endSupervisor(ctx context.Context, status Status, keepLogs bool) error {
	client, err := Open(status.Dir)
	if err == nil {
		err = client.down(ctx, keepLogs)
	}
	if err == nil {
		err = poll(ctx, downLimit, func(context.Context) error { return stillThere(status) })
	}
	if err == nil || ctx.Err() != nil || status.Attached {
		return err
	}
	process, err := os.FindProcess(status.Supervisor.PID)
	if err != nil {
		return err
	}
	if err := process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return poll(ctx, downLimit, func(context.Context) error { return stillAlive(status) })
}

// stillThere tells that a lab has not ended.
func stillThere(status Status) error {
	if _, err := ReadStatus(status.Dir); !errors.Is(err, ErrNoLab) {
		return fmt.Errorf("the lab in %s is still there", status.Dir)
	}
	if status.Attached {
		return nil
	}
	return stillAlive(status)
}

// stillAlive tells that a process of the lab runs.
func stillAlive(status Status) error {
	processes := []ProcessStatus{status.Supervisor}
	for _, unit := range status.Units {
		processes = append(processes, unit.Processes...)
	}
	for _, p := range processes {
		if p.Alive() {
			return fmt.Errorf("process %d (%s) still runs", p.PID, p.Name)
		}
	}
	return nil
}
