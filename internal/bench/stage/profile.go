package stage

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
)

// profileTime is how much of a busy phase is looked at.
const profileTime = 8 * time.Second

// profileArgs are what API server and hub need to be profiled.
func (s *Stage) profileArgs() (server, hub []string, err error) {
	if s.options.Profiles == "" {
		return nil, nil, nil
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, fmt.Errorf("find a port for the hub's profiles: %w", err)
	}
	s.hubProfiles = free.Addr().String()
	dir, err := filepath.Abs(s.options.Profiles)
	if err != nil {
		return nil, nil, err
	}
	hub = []string{"--pprof-bind-address=" + s.hubProfiles, "--render-profiles=" + dir}
	return []string{"--profiling=true"}, hub, free.Close()
}

// Profile writes CPU profiles of the API server and of the hub, of the time
// that begins now, and of the hub's memory at its end. Render processes write
// theirs when they end. It does nothing where none are wanted.
func (s *Stage) Profile(ctx context.Context, phase string) (wait func() error) {
	return s.ProfileFor(ctx, phase, profileTime)
}

// ProfileFor is Profile for a phase in which so little happens that only a long
// time tells.
func (s *Stage) ProfileFor(ctx context.Context, phase string, took time.Duration) (wait func() error) {
	if s.options.Profiles == "" {
		return func() error { return nil }
	}
	seconds := strconv.Itoa(int(took.Seconds()))
	var group errgroup.Group
	group.Go(func() error {
		raw, err := s.Kube.RESTClient().Get().AbsPath("/debug/pprof/profile").Param("seconds", seconds).DoRaw(ctx)
		if err != nil {
			return fmt.Errorf("profile the API server: %w", err)
		}
		return s.keep(phase+"-kube-apiserver.pprof", raw)
	})
	group.Go(func() error {
		raw, err := fetch(ctx, "http://"+s.hubProfiles+"/debug/pprof/profile?seconds="+seconds)
		if err != nil {
			return fmt.Errorf("profile the hub: %w", err)
		}
		if err := s.keep(phase+"-hub.pprof", raw); err != nil {
			return err
		}
		if raw, err = fetch(ctx, "http://"+s.hubProfiles+"/debug/pprof/heap"); err != nil {
			return fmt.Errorf("profile the hub's memory: %w", err)
		}
		return s.keep(phase+"-hub-memory.pprof", raw)
	})
	return group.Wait
}

func (s *Stage) keep(name string, raw []byte) error {
	if err := os.MkdirAll(s.options.Profiles, 0o750); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.options.Profiles, name), raw, 0o600)
}

func fetch(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", url, answer.Status)
	}
	return io.ReadAll(answer.Body)
}
