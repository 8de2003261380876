// Command controlplane is a whole Kubernetes control plane in one program:
// etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok (which
// makes pods become Ready without a container runtime) and kubectl.
//
// It acts as the program named by the base name of its own path, or else by
// its first argument, so that one build and one file on disk serve all of
// them: "controlplane kube-apiserver --help", or a symlink named kubectl.
package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

// programs are the personalities; each gets the arguments without its own name.
var programs = map[string]func(args []string) int{
	"etcd": func(args []string) int {
		etcdmain.Main(append([]string{"etcd"}, args...))
		return 0
	},
	"kube-apiserver":          command(apiserver.NewAPIServerCommand),
	"kube-controller-manager": command(controllermanager.NewControllerManagerCommand),
	"kube-scheduler":          command(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
	"kubectl":                 runKubectl,
	"kwok":                    runKwok,
}

func main() {
	os.Exit(run(os.Args))
}

func run(argv []string) int {
	if program, ok := programs[filepath.Base(argv[0])]; ok {
		return program(argv[1:])
	}
	if len(argv) > 1 {
		if program, ok := programs[argv[1]]; ok {
			return program(argv[2:])
		}
	}
	names := slices.Sorted(maps.Keys(programs))
	fmt.Fprintf(os.Stderr, "usage: controlplane {%s} [flags]\n", strings.Join(names, "|"))
	return 2
}

// command adapts a component's cobra command.
func command(build func() *cobra.Command) func([]string) int {
	return func(args []string) int {
		cmd := build()
		cmd.SetArgs(args)
		return cli.Run(cmd)
	}
}

// runKubectl reads os.Args itself to find plugins, so they must look as they
// do for a program that is really called kubectl.
func runKubectl(args []string) int {
	os.Args = append([]string{"kubectl"}, args...)
	cmd := kubectl.NewDefaultKubectlCommand()
	cmd.SetArgs(args)
	if err := cli.RunNoErrOutput(cmd); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
	return 0
}
