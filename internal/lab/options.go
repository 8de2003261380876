package lab

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// Names of the parts of a lab that are not a spoke or its agent.
const (
	// Hub is the cluster that holds the desired state.
	Hub = "hub"
	// HubController is the process flotilla-hub.
	HubController = "hub-controller"
	// Git is the Git server.
	Git = "git"

	agentPrefix = "agent/"
)

// AgentOf returns the name of the part that is the agent of a spoke.
func AgentOf(spoke string) string { return agentPrefix + spoke }

// Options say what a lab is made of.
type Options struct {
	// Dir is the lab's directory; it must not exist or be empty.
	Dir string `json:"dir"`
	// Spokes are the clusters besides the hub.
	Spokes []Spoke `json:"spokes,omitempty"`
	// Programs are the files that are run.
	Programs Programs `json:"programs"`
	// Products installs Flotilla's charts and runs flotilla-hub and an agent
	// per spoke; without it the clusters are empty.
	Products bool `json:"products,omitempty"`
	// HubArgs and AgentArgs are given to flotilla-hub and to each
	// flotilla-agent after those of the charts, which they override.
	HubArgs   []string `json:"hubArgs,omitempty"`
	AgentArgs []string `json:"agentArgs,omitempty"`
	// APIServerArgs are given to each API server after the lab's own, which
	// they override. Relative paths are below the cluster's directory.
	APIServerArgs []string `json:"apiServerArgs,omitempty"`
	// KeepLogs leaves Dir/logs in place when the lab ends.
	KeepLogs bool `json:"keepLogs,omitempty"`
	// WithPID ends the lab when this process ends; zero for none.
	WithPID int `json:"withPID,omitempty"`
	// Progress is told each step that is done; it may be nil. It is called
	// by one goroutine at a time.
	Progress func(Step) `json:"-"`
}

// Spoke is a cluster to be managed.
type Spoke struct {
	// Name names the Kubernetes cluster, the Cluster object and the files.
	Name string `json:"name"`
	// Labels go on the Cluster object, for selectors and templates.
	Labels map[string]string `json:"labels,omitempty"`
}

// spokeName is a DNS label that leaves room for the suffixes of file names.
var spokeName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$`)

// DefaultSpokes returns n spokes: dev, staging and prod, then spoke-4 and on,
// each labelled with its env and a region.
func DefaultSpokes(n int) []Spoke {
	names := []string{"dev", "staging", "prod"}
	regions := []string{"eu-west", "us-east", "ap-south"}
	spokes := make([]Spoke, n)
	for i := range spokes {
		name := fmt.Sprintf("spoke-%d", i+1)
		if i < len(names) {
			name = names[i]
		}
		spokes[i] = Spoke{Name: name, Labels: map[string]string{"env": name, "region": regions[i%len(regions)]}}
	}
	return spokes
}

// ParseSpoke reads NAME or NAME=label=value,label=value. A spoke without an
// env label gets its name as env.
func ParseSpoke(text string) (Spoke, error) {
	name, pairs, _ := strings.Cut(text, "=")
	set, err := labels.ConvertSelectorToLabelsMap(pairs)
	if err != nil {
		return Spoke{}, fmt.Errorf("spoke %q: %w; write NAME=label=value,label=value", text, err)
	}
	if set == nil {
		set = labels.Set{}
	}
	if _, ok := set["env"]; !ok {
		set["env"] = name
	}
	return Spoke{Name: name, Labels: set}, validateName(name)
}

func validateName(name string) error {
	if !spokeName.MatchString(name) {
		return fmt.Errorf("spoke name %q: use 1 to 40 lower-case letters, digits and '-'", name)
	}
	reserved := []string{Hub, HubController, Git, "logs", "lab"}
	if slices.Contains(reserved, name) || strings.HasSuffix(name, "-agent") || strings.HasSuffix(name, "-hub") {
		return fmt.Errorf("spoke name %q is taken by a part of the lab: choose another", name)
	}
	return nil
}

func (o Options) validate() error {
	seen := map[string]bool{}
	for _, spoke := range o.Spokes {
		if err := validateName(spoke.Name); err != nil {
			return err
		}
		if seen[spoke.Name] {
			return fmt.Errorf("two spokes are called %q", spoke.Name)
		}
		seen[spoke.Name] = true
	}
	return o.Programs.validate(o.Products)
}
