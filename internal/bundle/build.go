package bundle

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/names"
	"github.com/flotilla-sh/flotilla/internal/source"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
	"github.com/flotilla-sh/flotilla/pkg/fleetyaml"
)

// builder makes the draft of one place.
type builder struct {
	fsys fs.FS
	in   Input
	place
	// config is the full path of the file that is read for fleet.yaml, or "".
	config string
	// valuesFiles are the values files, relative to dir, that are merged into
	// the values and hence are no resources.
	valuesFiles []string
	warnings    []fault.Note
	// bytes is what all bundles have read so far.
	bytes *int64
}

// build returns the draft of a place, or false where there is nothing to deploy.
// bytes counts what was read.
func build(tree source.Tree, in Input, p place, bytes *int64) (Draft, bool) {
	b := &builder{fsys: tree.FS, in: in, place: p, bytes: bytes}
	draft := Draft{Name: names.Bundle(in.RepoName, p.dir, p.options), Path: p.dir}
	config, err := b.readConfig(&draft)
	if err == nil {
		err = b.fill(&draft, config)
	}
	draft.Warnings = b.warnings
	draft.Err = err
	return draft, err != nil || len(draft.Files) > 0 || hasChart(&draft.Spec)
}

// readConfig parses fleet.yaml and settles the name.
func (b *builder) readConfig(draft *Draft) (*fleetyaml.FleetYAML, error) {
	if b.err != nil {
		return nil, b.err
	}
	var err error
	if b.config, err = b.configFile(); err != nil {
		return nil, err
	}
	draft.Config = b.config
	if b.config == "" {
		return &fleetyaml.FleetYAML{}, nil
	}
	data, err := b.readYAML(b.config)
	if absent(err) {
		return nil, fault.Stall(reasonFleetYAML, fault.In(b.config, 0, fmt.Errorf("the options file %s does not exist", b.config)))
	}
	if err != nil {
		return nil, err
	}
	draft.Name = cmp.Or(fleetyaml.Name(data), draft.Name)
	config, warnings, err := fleetyaml.Parse(data, b.config)
	return config, b.judge(warnings, err)
}

// maxYAML is how large a file may be that is parsed here: what it holds needs
// up to a hundred times as much memory.
const maxYAML = 1 << 20

// readYAML returns a file that is about to be parsed.
func (b *builder) readYAML(file string) ([]byte, error) {
	info, err := fs.Stat(b.fsys, file)
	if err == nil && info.Size() > maxYAML {
		return nil, fault.Stall(reasonTooLarge, fault.In(file, 0, fmt.Errorf("the file %s has %d bytes, and more than %d are not read: no Bundle could hold them; "+
			"move what is large into a file of the chart or into a ConfigMap", file, info.Size(), maxYAML)))
	}
	if err == nil && info.IsDir() {
		return nil, fault.Stall(reasonFleetYAML, fault.In(file, 0, fmt.Errorf("%s is a directory, and a file is wanted", file)))
	}
	var data []byte
	if err == nil {
		data, err = fs.ReadFile(b.fsys, file)
	}
	if err != nil {
		return nil, cannotRead("", file, err)
	}
	return data, nil
}

// configFile returns the path of the file that is read for fleet.yaml.
func (b *builder) configFile() (string, error) {
	if b.options != "" {
		return path.Join(b.dir, b.options), nil
	}
	found, err := fleetFiles(b.fsys, b.dir)
	if len(found) == 0 {
		return "", err
	}
	file := path.Join(b.dir, found[0])
	if len(found) > 1 {
		b.warnings = append(b.warnings, fault.Note{File: file, Line: 1, Message: found[1] + " lies beside it and is not read; delete one of them"})
	}
	return file, nil
}

// judge keeps warnings, or makes an error of them where they are not wanted.
func (b *builder) judge(warnings []fleetyaml.Problem, err error) error {
	for _, w := range warnings {
		b.warnings = append(b.warnings, fault.Note{File: w.File, Line: w.Line, Message: w.Message})
	}
	if b.in.Strict {
		err = errors.Join(placed(fleetyaml.Strict(warnings)), placed(err))
	}
	return fault.Stall(reasonFleetYAML, placed(err))
}

// placed gives each problem of a file its place.
func placed(err error) error {
	problems, ok := errors.AsType[fleetyaml.Problems](err)
	if !ok {
		return err
	}
	errs := make([]error, len(problems))
	for i, p := range problems {
		errs[i] = fault.At(p.File, p.Line, errors.New(p.Message))
	}
	return errors.Join(errs...)
}

// fill makes the draft of the parsed fleet.yaml and the directory's files.
func (b *builder) fill(draft *Draft, config *fleetyaml.FleetYAML) error {
	err := b.mergeValuesFiles(config)
	files, loadErr := b.load(&config.BundleSpec, config.TargetCustomizations)
	if err := errors.Join(err, loadErr); err != nil {
		return err
	}
	if len(config.ImageScans) > 0 {
		b.warnings = append(b.warnings, fault.Note{File: b.config, Line: config.Line("imageScans"), Message: "imageScans have no effect yet"})
	}
	draft.Files = files
	draft.SourceDigest = source.Digest(files)
	draft.Labels = b.labels(config)
	draft.Spec = b.in.spec(config)
	return nil
}

func (b *builder) labels(config *fleetyaml.FleetYAML) map[string]string {
	labels := map[string]string{}
	maps.Copy(labels, b.in.Labels)
	maps.Copy(labels, config.Metadata.Labels)
	maps.Copy(labels, config.Labels)
	return labels
}

// load reads the bundle's files.
func (b *builder) load(spec *fleet.BundleSpec, customizations []fleet.BundleTarget) ([]source.File, error) {
	l := &lister{fsys: b.fsys, root: b.dir, options: b.options, nested: map[string]bool{}}
	err := l.list(".", ignores{}, 0)
	b.warnings = append(b.warnings, l.warnings...)
	if err != nil {
		return nil, err
	}
	if !needsNested(l.files, spec, customizations) {
		l.files = slices.DeleteFunc(l.files, func(name string) bool { return within(name, l.nested) })
	}
	l.files = slices.DeleteFunc(l.files, b.isConfig)
	slices.Sort(l.files)
	if err := b.mayRead(l.files); err != nil {
		return nil, err
	}
	files := make([]source.File, 0, len(l.files))
	for _, name := range l.files {
		data, err := fs.ReadFile(b.fsys, path.Join(b.dir, name))
		if err != nil {
			return nil, cannotRead("", path.Join(b.dir, name), err)
		}
		files = append(files, source.File{Path: name, Data: data})
	}
	return files, nil
}

// mayRead refuses files that would need more memory than a hub gives to one
// GitRepo, before they are read.
func (b *builder) mayRead(files []string) error {
	if b.in.MaxBytes <= 0 {
		return nil
	}
	own, largest, at := int64(0), int64(0), ""
	for _, name := range files {
		info, err := fs.Stat(b.fsys, path.Join(b.dir, name))
		if err != nil {
			return cannotRead("", path.Join(b.dir, name), err)
		}
		if own += info.Size(); info.Size() > largest {
			largest, at = info.Size(), path.Join(b.dir, name)
		}
	}
	if *b.bytes+own > b.in.MaxBytes {
		return fault.Stall(reasonTooLarge, beyondBound{fmt.Errorf("the %d files of the directory %q have %d bytes (the largest: %s with %d), and with the bundles before it more than %d, "+
			"which is all that the bundles of one GitRepo may have: narrow spec.paths, name what is not deployed in a .fleetignore, or raise --git-max-bundles-size of the hub",
			len(files), b.dir, own, at, largest, b.in.MaxBytes)})
	}
	*b.bytes += own
	return nil
}

// beyondBound is the error of files that Input.MaxBytes has no room for.
type beyondBound struct{ error }

// isConfig tells whether a file configures the bundle and is no resource.
func (b *builder) isConfig(name string) bool {
	// A fleet.yaml of another bundle stays: it tells the render where that one
	// begins.
	other := slices.Contains(b.otherOptions, name) && !slices.Contains(fleetyaml.FileNames(), path.Base(name))
	return slices.Contains(fleetyaml.FileNames(), name) || name == b.options || other ||
		slices.Contains(b.valuesFiles, name)
}

// needsNested tells whether the files of nested bundles may matter to the outer
// one. Of plain YAML the render would drop them; a chart, a kustomization or an
// overlay can refer to any file.
func needsNested(files []string, spec *fleet.BundleSpec, customizations []fleet.BundleTarget) bool {
	if slices.Contains(files, "Chart.yaml") || slices.ContainsFunc(files, isKustomization) {
		return true
	}
	if refersToFiles(&spec.BundleDeploymentOptions) {
		return true
	}
	for _, t := range slices.Concat(spec.Targets, customizations) {
		if refersToFiles(&t.BundleDeploymentOptions) {
			return true
		}
	}
	return false
}

func refersToFiles(o *fleet.BundleDeploymentOptions) bool {
	return o.Kustomize != nil || o.YAML != nil || o.Helm != nil && o.Helm.Chart != ""
}

// hasChart tells whether a bundle without files brings a chart from elsewhere.
func hasChart(spec *fleet.BundleSpec) bool {
	named := func(h *fleet.HelmOptions) bool { return h != nil && (h.Chart != "" || h.Repo != "") }
	return named(spec.Helm) || slices.ContainsFunc(spec.Targets, func(t fleet.BundleTarget) bool { return named(t.Helm) })
}
