package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Programs are the executables that a lab runs.
type Programs struct {
	// ControlPlane is the multi-call program of e2e/controlplane.
	ControlPlane string `json:"controlPlane"`
	// Flotilla is the CLI, which is also the Git server.
	Flotilla string `json:"flotilla"`
	// Hub is flotilla-hub.
	Hub string `json:"hub"`
	// Agent is flotilla-agent.
	Agent string `json:"agent"`
}

// ProgramsIn returns the programs as "make build" puts them in a directory.
func ProgramsIn(dir string) Programs {
	return Programs{
		ControlPlane: filepath.Join(dir, "controlplane"),
		Flotilla:     filepath.Join(dir, "flotilla"),
		Hub:          filepath.Join(dir, "flotilla-hub"),
		Agent:        filepath.Join(dir, "flotilla-agent"),
	}
}

// validate checks that each program that will be run is there.
func (p Programs) validate(products bool) error {
	needed := []string{p.ControlPlane, p.Flotilla}
	if products {
		needed = append(needed, p.Hub, p.Agent)
	}
	var errs []error
	for _, path := range needed {
		if info, err := os.Stat(path); err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
			errs = append(errs, fmt.Errorf("no program at %s", path))
		}
	}
	if len(errs) > 0 {
		return fmt.Errorf("the lab lacks programs: run `make build`, or name them by flags:\n%w", errors.Join(errs...))
	}
	return nil
}
