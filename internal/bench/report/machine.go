package report

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// Machine is where something was measured.
type Machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Memory string `json:"memory"`
	Kernel string `json:"kernel"`
	Go     string `json:"go"`
	// Load is the load average when the program began: others on the machine.
	Load string `json:"load"`
}

// ThisMachine describes the machine that the program runs on.
func ThisMachine() Machine {
	return Machine{
		CPU: field("/proc/cpuinfo", "model name"), Cores: runtime.NumCPU(), Memory: field("/proc/meminfo", "MemTotal"),
		Kernel: word("/proc/sys/kernel/osrelease"), Go: runtime.Version(), Load: word("/proc/loadavg"),
	}
}

// String is one line for people.
func (m Machine) String() string {
	return fmt.Sprintf("%d × %s, %s, Linux %s, %s, load %s", m.Cores, m.CPU, m.Memory, m.Kernel, m.Go, m.Load)
}

// field returns the first value of a name in a file of "name: value" lines.
func field(file, name string) string {
	data, _ := os.ReadFile(file) // unknown where there is none
	for line := range strings.Lines(string(data)) {
		if key, value, _ := strings.Cut(line, ":"); strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// word returns the first word of a file.
func word(file string) string {
	data, _ := os.ReadFile(file) // unknown where there is none
	if words := strings.Fields(string(data)); len(words) > 0 {
		return words[0]
	}
	return "unknown"
}
