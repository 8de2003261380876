package stage

import (
	"fmt"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/flotilla-sh/flotilla/internal/bench/meter"
	"github.com/flotilla-sh/flotilla/internal/lab"
)

// Spoke is a real cluster of the stage with its agent.
type Spoke struct {
	Kube  *kubernetes.Clientset
	Meter *meter.Meter
	// AgentPID is the process id of its agent.
	AgentPID int
}

// Spoke returns a spoke of the lab.
func (s *Stage) Spoke(name string) (*Spoke, error) {
	status := s.Lab.Status()
	spoke := &Spoke{}
	for _, unit := range status.Units {
		if unit.Name == lab.AgentOf(name) && len(unit.Processes) == 1 {
			spoke.AgentPID = unit.Processes[0].PID
		}
	}
	for _, cluster := range status.Spokes {
		if cluster.Name != name {
			continue
		}
		config, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig)
		if err != nil {
			return nil, err
		}
		config.QPS, config.UserAgent = -1, userAgent
		if spoke.Kube, err = kubernetes.NewForConfig(config); err != nil {
			return nil, err
		}
		spoke.Meter = meter.New(cluster, spoke.Kube.RESTClient(), map[string]int{meter.Agent: spoke.AgentPID})
		return spoke, nil
	}
	return nil, fmt.Errorf("the stage has no spoke %q", name)
}
