package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// State says what a part of the lab does.
type State string

// The states of a part of the lab.
const (
	// Starting parts are not ready yet.
	Starting State = "starting"
	// Running parts serve.
	Running State = "running"
	// Stopped parts were asked to stop, or their lab has ended.
	Stopped State = "stopped"
	// Failed parts have a process that ended by itself.
	Failed State = "failed"
)

// ErrNoLab means that a directory holds no lab.
var ErrNoLab = errors.New("no lab here")

// Status describes a lab; it is also the content of the file lab.json.
type Status struct {
	// Dir is the lab's directory.
	Dir string `json:"dir"`
	// Ready says that everything has been started once.
	Ready bool `json:"ready"`
	// Supervisor is the parent of all processes of the lab.
	Supervisor ProcessStatus `json:"supervisor"`
	// Attached labs have a supervisor that also does other things, such as a
	// test.
	Attached bool `json:"attached,omitempty"`
	// Made is the topmost directory that the lab made, to be removed with it.
	Made string `json:"made,omitempty"`
	// Kubectl is a kubectl of the version of the clusters.
	Kubectl string `json:"kubectl"`
	// Hub is the cluster that holds the desired state.
	Hub ClusterStatus `json:"hub"`
	// Spokes are the clusters that are managed.
	Spokes []ClusterStatus `json:"spokes"`
	// Git is the Git server.
	Git GitStatus `json:"git"`
	// Units are the parts that can be stopped and started by name.
	Units []UnitStatus `json:"units"`
}

// ClusterStatus describes a cluster of the lab.
type ClusterStatus struct {
	// Name is the cluster's name.
	Name string `json:"name"`
	// Labels are those of the Cluster object on the hub.
	Labels map[string]string `json:"labels,omitempty"`
	// Kubeconfig is a file that gives all rights on the cluster.
	Kubeconfig string `json:"kubeconfig"`
	// Server is the address of the API server.
	Server string `json:"server"`
	// Dir is where the processes of the cluster run.
	Dir string `json:"dir,omitempty"`
}

// GitStatus describes the Git server.
type GitStatus struct {
	// URL is what NAME.git is appended to; pushing makes new repositories.
	URL string `json:"url"`
	// Root is where the repositories are on disk.
	Root string `json:"root"`
}

// UnitStatus describes a part of the lab.
type UnitStatus struct {
	// Name is what "flotilla lab stop" and "start" take.
	Name string `json:"name"`
	// State says what the part does.
	State State `json:"state"`
	// Processes are in the order of their start.
	Processes []ProcessStatus `json:"processes,omitempty"`
}

// ProcessStatus names a process for certain.
type ProcessStatus struct {
	// Name is the program's name.
	Name string `json:"name"`
	// PID is the process id.
	PID int `json:"pid"`
	// StartTime tells the process from a later one with the same id.
	StartTime uint64 `json:"startTime"`
	// Log is the file that the process writes its output to.
	Log string `json:"log,omitempty"`
}

// Alive says whether the process still runs.
func (p ProcessStatus) Alive() bool {
	return p.PID > 0 && p.StartTime != 0 && startTime(p.PID) == p.StartTime
}

// MemoryBytes is the memory that the process does not share with a file.
func (p ProcessStatus) MemoryBytes() int64 {
	if !p.Alive() {
		return 0
	}
	return residentBytes(p.PID)
}

// ReadStatus returns what a lab's directory tells, compared with the
// processes that really run.
func ReadStatus(dir string) (Status, error) {
	data, err := os.ReadFile(filepath.Join(dir, stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return Status{}, fmt.Errorf("%w: there is no %s; start one with `flotilla lab up`, or name its directory by --state",
			ErrNoLab, filepath.Join(dir, stateFile))
	}
	if err != nil {
		return Status{}, err
	}
	var status Status
	if err := json.Unmarshal(data, &status); err != nil {
		return Status{}, fmt.Errorf("%s: %w", filepath.Join(dir, stateFile), err)
	}
	if !status.Supervisor.Alive() {
		status.markStopped()
	}
	return status, nil
}

func (s *Status) markStopped() {
	for i := range s.Units {
		s.Units[i].State = Stopped
		s.Units[i].Processes = nil
	}
}

// write replaces the state file as a whole.
func (s Status) write() error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(s.Dir, stateFile)
	if err := os.WriteFile(path+".new", append(data, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
