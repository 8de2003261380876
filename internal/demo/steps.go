package demo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/flotilla-sh/flotilla/internal/lab"
)

// manifest is the GitRepo that the demo declares.
const manifest = `apiVersion: fleet.cattle.io/v1alpha1
kind: GitRepo
metadata:
  name: demo
  namespace: fleet-default
spec:
  repo: %s
  branch: main
  paths:
  - examples/raw
  - examples/helm
  - examples/kustomize
  - bundles/cluster-baseline
  pollingInterval: 2s
  targets:
  - clusterSelector: {}
`

func startLab(ctx context.Context, s *session) error {
	args := []string{"lab", "up", "--state", s.lab, "--agent-arg", "--heartbeat=2s"}
	if !s.Keep {
		args = append(args, "--with-pid", strconv.Itoa(os.Getpid()))
	}
	if err := s.run(ctx, "flotilla", args...); err != nil {
		return err
	}
	s.started = true
	return s.kubectl(ctx, "get", "clusters.fleet.cattle.io", "-n", "fleet-default", "--show-labels")
}

func pushExamples(ctx context.Context, s *session) error {
	for _, dir := range []string{"examples", "bundles"} {
		s.say("copying %s/ to %s", dir, s.work)
		if err := os.CopyFS(filepath.Join(s.work, dir), os.DirFS(filepath.Join(s.Source, dir))); err != nil {
			return err
		}
	}
	url, err := s.repository()
	if err != nil {
		return err
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main"}, {"add", "."}, {"commit", "--quiet", "-m", "The examples"},
		{"remote", "add", "origin", url}, {"push", "--quiet", "origin", "main"},
	} {
		if err := s.git(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// repository is the URL of the demo's repository on the lab's Git server.
func (s *session) repository() (string, error) {
	status, err := lab.ReadStatus(s.lab)
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(status.Git.URL, "/") + "/demo.git", nil
}

func declare(ctx context.Context, s *session) error {
	url, err := s.repository()
	if err != nil {
		return err
	}
	file := filepath.Join(s.Dir, "gitrepo.yaml")
	text := fmt.Sprintf(manifest, url)
	s.say("%s:\n%s", file, text)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return err
	}
	if err := s.kubectl(ctx, "apply", "-f", file); err != nil {
		return err
	}
	if err := s.rolledOut(ctx); err != nil {
		return err
	}
	s.digests, err = s.runs(ctx)
	return err
}

// rolledOut waits until the newest commit of the clone runs everywhere.
func (s *session) rolledOut(ctx context.Context) error {
	commit, err := s.output(ctx, "git", "-C", s.work, "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	if err := s.await(ctx, "gitrepo/demo", "jsonpath={.status.commit}="+commit); err != nil {
		return err
	}
	if err := s.await(ctx, "gitrepo/demo", "condition=Ready"); err != nil {
		return err
	}
	return s.table(ctx)
}

// runs lists which digest each cluster runs of each bundle.
func (s *session) runs(ctx context.Context) (string, error) {
	return s.output(ctx, "kubectl", "get", "bundledeployments", "-A", "--no-headers",
		"-o", "custom-columns=CLUSTER:.metadata.labels.fleet\\.cattle\\.io/cluster,BUNDLE:.metadata.name,APPLIED:.status.appliedDeploymentID")
}

func pushCommit(ctx context.Context, s *session) error {
	file := filepath.Join(s.work, "examples", "raw", "configmap.yaml")
	before, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	after := strings.Replace(string(before), colour, newColour, 1)
	if after == string(before) {
		return fmt.Errorf("%s has no %q to change", file, colour)
	}
	if err := os.WriteFile(file, []byte(after), 0o644); err != nil {
		return err
	}
	return s.commitAndPush(ctx, "Make the clock green")
}

// What the demo changes in examples/raw/configmap.yaml.
const (
	colour    = "colour: blue"
	newColour = "colour: green"
)

func (s *session) commitAndPush(ctx context.Context, message string) error {
	for _, args := range [][]string{{"diff", "--unified=0"}, {"commit", "--quiet", "--all", "-m", message}, {"push", "--quiet", "origin", "main"}} {
		if err := s.git(ctx, args...); err != nil {
			return err
		}
	}
	return s.rolledOut(ctx)
}

func drift(ctx context.Context, s *session) error {
	err := s.kubectl(ctx, "--kubeconfig", s.kubeconfig("prod"), "-n", "apps", "patch", "configmap", "clock",
		"--type=merge", "-p", `{"data":{"colour":"red"}}`)
	if err != nil {
		return err
	}
	if err := s.await(ctx, "cluster.fleet.cattle.io/prod", "jsonpath={.status.display.state}=Modified"); err != nil {
		return err
	}
	return s.table(ctx)
}

func revert(ctx context.Context, s *session) error {
	for _, args := range [][]string{{"revert", "--no-edit", "HEAD"}, {"push", "--quiet", "origin", "main"}} {
		if err := s.git(ctx, args...); err != nil {
			return err
		}
	}
	if err := s.rolledOut(ctx); err != nil {
		return err
	}
	now, err := s.runs(ctx)
	if err != nil {
		return err
	}
	if now != s.digests {
		return fmt.Errorf("the digests are not those of before:\n%s\nbefore:\n%s", now, s.digests)
	}
	s.say("%s\nthe digests are those of before the commit", now)
	return nil
}

func goOffline(ctx context.Context, s *session) error {
	if err := s.run(ctx, "flotilla", "lab", "stop", lab.AgentOf("staging"), "--state", s.lab); err != nil {
		return err
	}
	if err := s.await(ctx, "cluster.fleet.cattle.io/staging", "condition=Online=false"); err != nil {
		return err
	}
	if err := s.await(ctx, "gitrepo/demo", "condition=Ready=Unknown"); err != nil {
		return err
	}
	return s.table(ctx)
}

func comeBack(ctx context.Context, s *session) error {
	file := filepath.Join(s.work, "examples", "raw", "configmap.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), colour, newColour, 1)), 0o644); err != nil {
		return err
	}
	for _, args := range [][]string{{"commit", "--quiet", "--all", "-m", "While staging is away"}, {"push", "--quiet", "origin", "main"}} {
		if err := s.git(ctx, args...); err != nil {
			return err
		}
	}
	if err := s.run(ctx, "flotilla", "lab", "start", lab.AgentOf("staging"), "--state", s.lab); err != nil {
		return err
	}
	return s.rolledOut(ctx)
}
