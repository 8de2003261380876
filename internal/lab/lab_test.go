package lab_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla-sh/flotilla/internal/lab"
	"github.com/flotilla-sh/flotilla/internal/lab/labtest"
)

func TestSpokeIsAWorkingCluster(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "lab")
	l := startLab(t, lab.Options{Dir: dir, Spokes: lab.DefaultSpokes(1), Programs: programs(t)})
	status := l.Status()
	dev := cluster{status.Kubectl, status.Spokes[0].Kubeconfig}

	if nodes := dev.run(t, "get", "nodes", "--no-headers"); !strings.Contains(nodes, " Ready ") {
		t.Errorf("the node is not Ready: %s", nodes)
	}
	dev.run(t, "create", "deployment", "web", "--image=web", "--replicas=2")
	dev.run(t, "expose", "deployment", "web", "--port=80")
	dev.run(t, "create", "job", "once", "--image=once")
	dev.run(t, "wait", "--for=condition=Available", "deployment/web", "--timeout=30s")
	dev.run(t, "wait", "--for=condition=Complete", "job/once", "--timeout=30s")
	dev.run(t, "wait", "--for=jsonpath={.endpoints[1].conditions.ready}=true", "endpointslice", "-l", "kubernetes.io/service-name=web", "--timeout=30s")
	dev.run(t, "create", "namespace", "short-lived")
	dev.run(t, "delete", "namespace", "short-lived", "--timeout=30s")

	if err := l.StopUnit("dev"); err != nil {
		t.Fatal(err)
	}
	if out, err := dev.try("get", "nodes", "--request-timeout=2s"); err == nil {
		t.Errorf("a spoke that is stopped still answers: %s", out)
	}
	if err := l.StartUnit(t.Context(), "dev"); err != nil {
		t.Fatal(err)
	}
	dev.run(t, "wait", "--for=condition=Available", "deployment/web", "--timeout=30s")
	if err := l.StopUnit("nonsense"); err == nil || !strings.Contains(err.Error(), "there are: git, hub, dev") {
		t.Errorf("an unknown part gives: %v", err)
	}

	t.Run("a second lab beside it", func(t *testing.T) {
		second := startLab(t, lab.Options{Dir: filepath.Join(t.TempDir(), "lab"), Programs: programs(t)})
		hub := cluster{status.Kubectl, second.Status().Hub.Kubeconfig}
		if out := hub.run(t, "get", "namespaces"); strings.Contains(out, "short-lived") {
			t.Errorf("the labs are one: %s", out)
		}
		dev.run(t, "get", "deployment", "web")
	})
	if err := l.Stop(); err != nil {
		t.Fatal(err)
	}
	nothingLeft(t, dir)
}

func TestBackgroundLab(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "lab")
	options := lab.Options{Dir: dir, Programs: programs(t)}
	status, err := lab.Up(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lab.Down(context.Background(), dir, false) })
	if _, err := lab.Up(t.Context(), options); err == nil || !strings.Contains(err.Error(), "runs in "+dir+" already") {
		t.Errorf("a second start gives: %v", err)
	}
	client, err := lab.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.StopUnit(t.Context(), lab.Git); err != nil {
		t.Fatal(err)
	}
	if state := stateOf(t, dir, lab.Git); state != lab.Stopped {
		t.Errorf("the Git server is %s", state)
	}
	if err := client.StartUnit(t.Context(), lab.Git); err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	git(t, work, "init", "-q", "-b", "main")
	git(t, work, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "first")
	git(t, work, "push", "-q", status.Git.URL+"/fleet.git", "main")

	if err := lab.Down(t.Context(), dir, false); err != nil {
		t.Fatal(err)
	}
	nothingLeft(t, filepath.Dir(dir))
	if err := lab.Down(t.Context(), dir, false); !errors.Is(err, lab.ErrNoLab) {
		t.Errorf("a lab that is down goes down with: %v", err)
	}
}

func TestKilledSupervisor(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "lab")
	options := lab.Options{Dir: dir, Programs: programs(t)}
	status, err := lab.Up(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lab.Down(context.Background(), dir, false) })
	process, err := os.FindProcess(status.Supervisor.PID)
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	labtest.Eventually(t, "the lab", func() error {
		if found := processesIn(t, dir); len(found) > 0 {
			return errors.New(strings.Join(found, "\n"))
		}
		// A process that ends has no command line for a moment before it is
		// dead.
		if state := stateOf(t, dir, lab.Hub); state != lab.Stopped {
			return fmt.Errorf("the hub is said to be %s", state)
		}
		return nil
	})
	if _, err := lab.Up(t.Context(), options); err == nil || !strings.Contains(err.Error(), "flotilla lab down") {
		t.Errorf("a start on what is left gives: %v", err)
	}
	if err := lab.Down(t.Context(), dir, false); err != nil {
		t.Fatal(err)
	}
	nothingLeft(t, dir)
}

func TestUpThatDoesNotFinish(t *testing.T) {
	t.Run("interrupted", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "lab")
		ctx, cancel := context.WithCancel(t.Context())
		_, err := lab.Up(ctx, lab.Options{Dir: dir, Programs: programs(t), Progress: func(lab.Step) { cancel() }})
		if err == nil || !strings.Contains(err.Error(), "interrupted") {
			t.Errorf("it ends with: %v", err)
		}
		nothingLeft(t, dir)
	})
	t.Run("killed", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "lab")
		p := programs(t)
		up := exec.Command(p.Flotilla, "lab", "up", dir, p.ControlPlane)
		if err := up.Start(); err != nil {
			t.Fatal(err)
		}
		labtest.Eventually(t, "the lab", func() error {
			if len(processesIn(t, dir)) < 3 {
				return errors.New("nothing has started")
			}
			return nil
		})
		if err := up.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = up.Wait()
		nothingLeft(t, dir)
	})
	t.Run("with a program that fails", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "lab")
		p := programs(t)
		p.ControlPlane = "/bin/false"
		_, err := lab.Start(t.Context(), lab.Options{Dir: dir, Programs: p})
		if err == nil || !strings.Contains(err.Error(), "hub-etcd ended by itself: exit status 1") {
			t.Errorf("it ends with: %v", err)
		}
		nothingLeft(t, dir)
	})
}

func TestEndsWithAnotherProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "lab")
	other := exec.Command("cat")
	other.Stdin, _ = os.Open("/dev/zero")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lab.Down(context.Background(), dir, false) })
	_, err := lab.Up(t.Context(), lab.Options{Dir: dir, Programs: programs(t), WithPID: other.Process.Pid})
	if err := errors.Join(err, other.Process.Kill()); err != nil {
		t.Fatal(err)
	}
	_ = other.Wait()
	nothingLeft(t, dir)
}

func stateOf(t *testing.T, dir, name string) lab.State {
	t.Helper()
	status, err := lab.ReadStatus(dir)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(status.Units, func(u lab.UnitStatus) bool { return u.Name == name })
	if i < 0 {
		t.Fatalf("no part %s in %v", name, status.Units)
	}
	return status.Units[i].State
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}
