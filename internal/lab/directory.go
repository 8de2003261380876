package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	stateFile = "lab.json"
	logsDir   = "logs"
)

// prepare makes the lab's directory. It takes one that is empty or holds the
// logs of an earlier lab, and returns the topmost directory that it made.
func prepare(dir string) (made string, err error) {
	if err := refuseForeign(dir); err != nil {
		return "", err
	}
	for parent := dir; ; parent = filepath.Dir(parent) {
		if _, err := os.Stat(parent); err == nil {
			break
		}
		made = parent
	}
	if err := os.RemoveAll(filepath.Join(dir, logsDir)); err != nil {
		return "", err
	}
	for _, sub := range []string{logsDir, "home", "bin", "clusters"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return "", err
		}
	}
	return made, nil
}

// refuseForeign returns an error for a directory that has anything in it
// which a new lab must not touch.
func refuseForeign(dir string) error {
	status, err := ReadStatus(dir)
	switch {
	case err == nil && status.Supervisor.Alive():
		return fmt.Errorf("a lab runs in %s already: see `flotilla lab status`, or end it with `flotilla lab down`", dir)
	case err == nil:
		return fmt.Errorf("%s holds what is left of a lab that was killed: clear it with `flotilla lab down --state %s`", dir, dir)
	case !errors.Is(err, ErrNoLab):
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, entry := range entries {
		if entry.Name() != logsDir {
			return fmt.Errorf("%s is not empty and holds no lab: choose another directory by --state", dir)
		}
	}
	return nil
}

// clearDir removes what a lab has written; its directory only goes where
// nothing else is in it.
func clearDir(status Status, keepLogs bool) error {
	entries, err := os.ReadDir(status.Dir)
	if err != nil {
		return ignoreAbsent(err)
	}
	var errs []error
	for _, entry := range entries {
		// The state goes last, as it says that there is something to clear.
		if entry.Name() == stateFile || keepLogs && entry.Name() == logsDir {
			continue
		}
		errs = append(errs, os.RemoveAll(filepath.Join(status.Dir, entry.Name())))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	err = ignoreAbsent(os.Remove(filepath.Join(status.Dir, stateFile)))
	if err == nil && status.Made != "" && !keepLogs {
		removeEmpty(status.Dir, status.Made)
	}
	return err
}

// removeEmpty removes directories from dir up to top as far as they are empty.
func removeEmpty(dir, top string) {
	for os.Remove(dir) == nil && dir != top {
		dir = filepath.Dir(dir)
	}
}

func ignoreAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
