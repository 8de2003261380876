package rows

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"

	"github.com/flotilla-sh/flotilla/internal/bench/meter"
	"github.com/flotilla-sh/flotilla/internal/bench/report"
	"github.com/flotilla-sh/flotilla/internal/bench/stage"
)

// exampleChart is rendered where no charts are given.
const exampleChart = "examples/helm"

var chartRow = Row{
	Name: "render", N: 1000,
	Title:   "one commit to a small chart (podinfo, or the example) with other values on each of N clusters",
	measure: func(ctx context.Context, r *Run) error { return r.render(ctx, "podinfo") },
}

var largeChartRow = Row{
	Name: "render-large", N: 100, Repeats: 1,
	Title: "one commit to kube-prometheus-stack with other values on each of N clusters",
	measure: func(ctx context.Context, r *Run) error {
		if r.Charts == "" {
			return errors.New("needs --charts, a directory with kube-prometheus-stack-*.tgz")
		}
		return r.render(ctx, "kube-prometheus-stack")
	},
}

// render measures a commit to a chart beside calls of Helm's engine.
func (r *Run) render(ctx context.Context, name string) error {
	files, err := r.chart(name)
	if err != nil {
		return err
	}
	s, _, err := r.fleet(ctx, r.N)
	if err != nil {
		return err
	}
	defer func() { _ = s.Stop() }()
	return r.memory(s, func() error {
		repo, err := r.firstRollout(ctx, s, files)
		if err != nil {
			return err
		}
		return r.renderCommit(ctx, s, repo, files)
	})
}

// firstRollout brings a chart to all clusters.
func (r *Run) firstRollout(ctx context.Context, s *stage.Stage, files map[string]string) (*stage.Repository, error) {
	repo := s.Repository("chart", nil)
	if err := repo.Commit(ctx, withFleetYAML(files, "one")); err != nil {
		return nil, err
	}
	if err := repo.Follow(ctx); err != nil {
		return nil, err
	}
	r.Log("first rollout")
	if _, err := repo.AwaitReady(ctx, r.N); err != nil {
		return nil, err
	}
	return repo, s.Rest(ctx)
}

// renderCommit measures the next commit.
func (r *Run) renderCommit(ctx context.Context, s *stage.Stage, repo *stage.Repository, files map[string]string) error {
	r.Log("the commit")
	profiled := s.Profile(ctx, "commit")
	var beside time.Duration
	took, use, err := s.Cost(ctx, func(ctx context.Context) (time.Time, error) {
		err := repo.Commit(ctx, withFleetYAML(files, "two"))
		if err != nil {
			return time.Time{}, err
		}
		if beside, err = r.besides(ctx, s); err != nil {
			return time.Time{}, err
		}
		return repo.AwaitReady(ctx, r.N)
	})
	if err != nil {
		return err
	}
	if err := profiled(); err != nil {
		return err
	}
	s.StopAgents()
	plain, err := plainEngine(files, min(r.N, 100))
	if err != nil {
		return err
	}
	r.phase("commit", use)
	n := float64(r.N)
	r.record(report.Figure{
		Name: "hub CPU for 1,000 clusters", Unit: "s", Value: use.CPU[meter.Hub].Seconds() / n * 1000,
		Floor: plain.Seconds() * 1000, Goal: "≤ 1.3 × the engine", Peer: "each agent renders",
	})
	r.record(report.Figure{Name: "commit → all Ready, polling each second", Unit: "s", Value: took.Seconds()})
	r.record(report.Figure{Name: "another bundle on 10 clusters meanwhile", Unit: "s", Value: beside.Seconds(), Goal: "not delayed"})
	return nil
}

// besides deploys another bundle while a large one is rendered.
func (r *Run) besides(ctx context.Context, s *stage.Stage) (time.Duration, error) {
	select {
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	case <-time.After(2 * time.Second): // the commit has been seen by then
	}
	b := small("other", 0)
	b.Clusters = map[string]string{stage.GroupLabel: "0"}
	b.Files = map[string]string{"configmap.yaml": stage.ConfigMap(b.Name, "one")}
	began := time.Now()
	if err := s.Create(ctx, b); err != nil {
		return 0, err
	}
	at, err := s.AwaitReady(ctx, stage.Want{b.Name: min(r.N, stage.GroupSize)})
	return at.Sub(began), err
}

// withFleetYAML adds a fleet.yaml whose values differ from cluster to cluster.
// Hooks are off: simulated clusters run none.
// The hub renders, however many there are: that is what is measured.
func withFleetYAML(files map[string]string, commit string) map[string]string {
	out := map[string]string{}
	for name, text := range files {
		out[name] = text
	}
	out["fleet.yaml"] = `defaultNamespace: bench
render: hub
helm:
  releaseName: bench
  values:
    grafana: {adminPassword: secret}
    prometheusOperator: {admissionWebhooks: {enabled: false}}
    cluster: "${ .ClusterLabels.` + stage.IndexLabel + ` }"
    nameOverride: "n${ .ClusterLabels.` + stage.IndexLabel + ` }"
    commit: ` + commit + "\n"
	return out
}

// engineValues are the same for Helm.
func engineValues(i int) map[string]any {
	return map[string]any{
		"grafana":            map[string]any{"adminPassword": "secret"},
		"prometheusOperator": map[string]any{"admissionWebhooks": map[string]any{"enabled": false}},
		"cluster":            fmt.Sprint(i),
		"nameOverride":       fmt.Sprintf("n%d", i), "commit": "two",
	}
}

// plainEngine is the time that Helm's engine needs for one render of n. All
// CPUs render at once, as in the hub: two that share a core need more time each.
func plainEngine(files map[string]string, n int) (time.Duration, error) {
	before, err := meter.CPUOf(os.Getpid())
	if err != nil {
		return 0, err
	}
	var group errgroup.Group
	cpus := runtime.NumCPU()
	for cpu := range cpus {
		group.Go(func() error {
			c, err := loadChart(files)
			for i := cpu; i < n && err == nil; i += cpus {
				err = plainRender(c, engineValues(i))
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return 0, err
	}
	after, err := meter.CPUOf(os.Getpid())
	return (after - before) / time.Duration(n), err
}

// plainRender is one call of Helm's engine.
func plainRender(c *chart.Chart, own map[string]any) error {
	values, err := chartutil.ToRenderValues(c, own,
		chartutil.ReleaseOptions{Name: "bench", Namespace: "bench", Revision: 1, IsInstall: true}, chartutil.DefaultCapabilities)
	if err != nil {
		return err
	}
	_, err = engine.Render(c, values)
	return err
}

func loadChart(files map[string]string) (*chart.Chart, error) {
	var buffered []*loader.BufferedFile
	for name, text := range files {
		buffered = append(buffered, &loader.BufferedFile{Name: name, Data: []byte(text)})
	}
	return loader.LoadFiles(buffered)
}

// chart returns the files of a chart: from an archive, or the example.
func (r *Run) chart(name string) (map[string]string, error) {
	if r.Charts == "" {
		return readDir(exampleChart)
	}
	archives, err := filepath.Glob(filepath.Join(r.Charts, name+"-*.tgz"))
	if err != nil || len(archives) != 1 {
		return nil, fmt.Errorf("want one %s-*.tgz in %s, found %d", name, r.Charts, len(archives))
	}
	archive, err := os.Open(archives[0])
	if err != nil {
		return nil, err
	}
	defer func() { _ = archive.Close() }()
	buffered, err := loader.LoadArchiveFiles(archive)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", archives[0], err)
	}
	files := map[string]string{}
	for _, file := range buffered {
		files[file.Name] = string(file.Data)
	}
	return files, nil
}

// readDir reads a directory, with paths relative to it.
func readDir(dir string) (map[string]string, error) {
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, dir+"/")] = string(data)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("the example chart is read from the repository's directory: %w", err)
	}
	return files, nil
}
