package charts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/Masterminds/semver/v3"
	"gopkg.in/yaml.v3"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/source"
	"github.com/flotilla-sh/flotilla/internal/source/chart"
)

// maxDepth bounds charts that depend on charts that depend on charts.
const maxDepth = 4

// dependency is what a Chart.yaml or Chart.lock says of another chart.
type dependency struct {
	Name       string `yaml:"name"`
	Version    string `yaml:"version"`
	Repository string `yaml:"repository"`

	file string // that says so
	line int
}

// UnmarshalYAML keeps the line.
func (d *dependency) UnmarshalYAML(n *yaml.Node) error {
	type plain dependency
	d.line = n.Line
	return n.Decode((*plain)(d))
}

// named tells whether the repository is a name that only the computer knows
// where it was given.
func (d *dependency) named() bool {
	return strings.HasPrefix(d.Repository, "@") || strings.HasPrefix(d.Repository, "alias:")
}

// declared are the dependencies of the chart in dir as its files name them. The
// last name that exists counts: charts of the first API version have them in a
// file of their own.
func declared(files []source.File, dir string, names ...string) []dependency {
	var out []dependency
	for _, name := range names {
		var found struct {
			Dependencies []dependency `yaml:"dependencies"`
		}
		// What cannot be parsed is for the render to complain about.
		if data := read(files, path.Join(dir, name)); data != nil && yaml.Unmarshal(data, &found) == nil && len(found.Dependencies) > 0 {
			out = found.Dependencies
			for i := range out {
				out[i].file = name
			}
		}
	}
	return out
}

func read(files []source.File, name string) []byte {
	for _, f := range files {
		if f.Path == name {
			return f.Data
		}
	}
	return nil
}

// missing are the dependencies of the chart in dir, if there is one, that are
// not in its charts directory.
func missing(files []source.File, dir string) []dependency {
	if read(files, path.Join(dir, "Chart.yaml")) == nil {
		return nil
	}
	var out []dependency
	var have map[string]bool
	for _, d := range declared(files, dir, "Chart.yaml", "requirements.yaml") {
		if have == nil {
			have = present(files, path.Join(dir, "charts"))
		}
		if d.Name != "" && !have[d.Name] && !packed(files, path.Join(dir, "charts", d.Name)) {
			out = append(out, d)
		}
	}
	return out
}

// present are the names of the unpacked charts in a charts directory.
func present(files []source.File, dir string) map[string]bool {
	names := map[string]bool{}
	for _, f := range files {
		if path.Base(f.Path) != "Chart.yaml" || path.Dir(path.Dir(f.Path)) != dir {
			continue
		}
		var meta struct {
			Name string `yaml:"name"`
		}
		if yaml.Unmarshal(f.Data, &meta) == nil {
			names[meta.Name] = true
		}
	}
	return names
}

// packed tells whether there is a packed chart whose path begins so.
func packed(files []source.File, prefix string) bool {
	for _, f := range files {
		version, ok := strings.CutPrefix(f.Path, prefix+"-")
		if ok && strings.HasSuffix(version, ".tgz") && !strings.Contains(version, "/") {
			if _, err := semver.NewVersion(strings.TrimSuffix(version, ".tgz")); err == nil {
				return true
			}
		}
	}
	return false
}

// complete brings what the chart in dir depends on and lacks. beside reads
// directories by paths relative to the chart.
func (f *filling) complete(ctx context.Context, dir string, beside func(string) ([]source.File, error), depth int) error {
	wanted := missing(f.files, dir)
	if len(wanted) == 0 {
		return nil
	}
	if depth > maxDepth {
		return fault.Stall(chart.ReasonInvalid, fmt.Errorf("%s: charts depend on each other more than %d deep", dir, maxDepth))
	}
	locked := declared(f.files, dir, "Chart.lock", "requirements.lock")
	var wrong []error
	for i, d := range wanted {
		into := path.Join(dir, "charts", d.Name)
		if read(f.files, path.Join(into, "Chart.yaml")) != nil {
			into = fmt.Sprintf("%s-%d", into, i) // the same chart in another version
		}
		if err := f.depend(ctx, f.locked(d, locked, dir), into, beside, depth); err != nil {
			err = f.placed(d, dir, err)
			if fault.ReasonOf(err, "") != chart.ReasonInvalid {
				return err
			}
			wrong = append(wrong, err) // nothing was asked for it
		}
	}
	return fault.Stall(chart.ReasonInvalid, errors.Join(wrong...))
}

// placed says of which dependency an error is, and where that is written if it is
// in the repository.
func (f *filling) placed(d dependency, dir string, err error) error {
	file := path.Join(f.Draft.Path, dir, d.file)
	if f.Tree != nil {
		if _, missing := fs.Stat(f.Tree, file); missing == nil {
			return fault.At(file, d.line, fmt.Errorf("dependency %s: %w", d.Name, err))
		}
	}
	return fmt.Errorf("dependency %s of the chart in %s: %w", d.Name, dir, err)
}

// locked gives a dependency the version of Chart.lock, where that still is one
// that Chart.yaml allows. Helm writes a URL there for a repository that Chart.yaml
// names as its author's computer knows it.
func (f *filling) locked(d dependency, locked []dependency, dir string) dependency {
	if len(locked) == 0 {
		return d
	}
	for _, l := range locked {
		same := strings.TrimRight(l.Repository, "/") == strings.TrimRight(d.Repository, "/") || d.named() && !l.named()
		if l.Name != d.Name || !same {
			continue
		}
		constraint, err := semver.NewConstraint(d.Version)
		version, versionErr := semver.NewVersion(l.Version)
		if l.Version == d.Version || err == nil && versionErr == nil && constraint.Check(version) {
			d.Version, d.Repository = l.Version, l.Repository
			return d
		}
	}
	if !strings.HasPrefix(d.Repository, "file://") {
		f.warnings = append(f.warnings, fault.Note{File: path.Join(f.Draft.Path, dir), Message: fmt.Sprintf("Chart.lock does not fit Chart.yaml for the dependency %s %s, so it is chosen anew: run \"helm dependency update\" and commit Chart.lock", d.Name, d.Version)})
	}
	return d
}

// depend brings one dependency.
func (f *filling) depend(ctx context.Context, d dependency, into string, beside func(string) ([]source.File, error), depth int) error {
	switch {
	case d.Repository == "":
		// It is to be in the charts directory, or disabled by values.
		return nil
	case d.named():
		return fault.Stall(chart.ReasonInvalid, fmt.Errorf("its repository is %q, a name on somebody's computer: write the URL, or commit the Chart.lock that \"helm dependency update\" writes, which has it", d.Repository))
	case strings.HasPrefix(d.Repository, "file://"):
		return f.dependBeside(ctx, strings.TrimPrefix(d.Repository, "file://"), into, beside, depth)
	}
	got, err := f.bring(ctx, chart.Want{Repo: d.Repository, Chart: d.Name, Version: d.Version}, into)
	if err != nil || got == nil {
		return err
	}
	return f.complete(ctx, into, got.Beside, depth+1)
}

// dependBeside brings a chart of the same repository.
func (f *filling) dependBeside(ctx context.Context, relative, into string, beside func(string) ([]source.File, error), depth int) error {
	if path.IsAbs(relative) {
		return fault.Stall(chart.ReasonInvalid, errors.New("its repository is a path of somebody's computer: write file:// and a path relative to the chart"))
	}
	files, err := beside(relative)
	if err != nil {
		return err
	}
	if err := f.put(into, files); err != nil {
		return err
	}
	return f.complete(ctx, into, func(further string) ([]source.File, error) { return beside(path.Join(relative, further)) }, depth+1)
}
