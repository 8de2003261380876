package bundle

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/flotilla-sh/flotilla/internal/fault"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
	"github.com/flotilla-sh/flotilla/pkg/fleetyaml"
)

// mergeValuesFiles puts the content of all valuesFiles over the values beside
// them, a later file over an earlier one.
func (b *builder) mergeValuesFiles(config *fleetyaml.FleetYAML) error {
	errs := []error{b.mergeHelm(config, config.Helm, "helm")}
	for i := range config.Targets {
		errs = append(errs, b.mergeHelm(config, config.Targets[i].Helm, fmt.Sprintf("targets[%d].helm", i)))
	}
	for i := range config.TargetCustomizations {
		errs = append(errs, b.mergeHelm(config, config.TargetCustomizations[i].Helm, fmt.Sprintf("targetCustomizations[%d].helm", i)))
	}
	return errors.Join(errs...)
}

func (b *builder) mergeHelm(config *fleetyaml.FleetYAML, helm *fleet.HelmOptions, at string) error {
	if helm == nil || len(helm.ValuesFiles) == 0 {
		return nil
	}
	var values map[string]any
	if helm.Values != nil {
		values = helm.Values.Data
	}
	var errs []error
	for i, name := range helm.ValuesFiles {
		key := fmt.Sprintf("%s.valuesFiles[%d]", at, i)
		over, err := b.readValues(name)
		if err != nil {
			errs = append(errs, fault.At(b.config, config.Line(key), fmt.Errorf("%s: %w", key, err)))
			continue
		}
		values = fleet.MergeValues(values, over)
	}
	helm.ValuesFiles = nil
	helm.Values = &fleet.GenericMap{Data: values}
	return errors.Join(errs...)
}

// readValues returns the values in a file named relative to the bundle.
func (b *builder) readValues(name string) (map[string]any, error) {
	file := path.Join(b.dir, name)
	if !fs.ValidPath(file) {
		return nil, fault.Stall(reasonFleetYAML, fmt.Errorf("%q leads out of the repository", name))
	}
	if rest, ok := b.fromAbove(name); ok {
		b.warnings = append(b.warnings, fault.Note{File: b.config, Message: fmt.Sprintf("valuesFiles are relative to the directory of fleet.yaml; %s is read for %q", rest, name)})
		name, file = rest, path.Join(b.dir, rest)
	}
	data, err := b.readYAML(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Stall(reasonFleetYAML, fmt.Errorf("the file %s does not exist%s", file, b.nearFile(file)))
	}
	if err != nil {
		return nil, err
	}
	b.valuesFiles = append(b.valuesFiles, path.Clean(name))
	values, warnings, err := fleetyaml.Values(data, file)
	return values, b.judge(warnings, err)
}

// fromAbove recognizes a values file of this directory that is named as seen
// from the directory above, as some charts do that bring their own fleet.yaml.
func (b *builder) fromAbove(name string) (string, bool) {
	rest, ok := strings.CutPrefix(path.Clean(name), path.Base(b.dir)+"/")
	if !ok {
		return "", false
	}
	_, errAsWritten := fs.Stat(b.fsys, path.Join(b.dir, name))
	_, errHere := fs.Stat(b.fsys, path.Join(b.dir, rest))
	return rest, errors.Is(errAsWritten, fs.ErrNotExist) && !absent(errHere)
}

// nearFile guesses which file was meant.
func (b *builder) nearFile(file string) string {
	entries, err := fs.ReadDir(b.fsys, path.Dir(file))
	if err != nil {
		return ""
	}
	var names []string
	for _, entry := range entries {
		if isYAML(entry.Name()) {
			names = append(names, entry.Name())
		}
	}
	guess := fleetyaml.Nearest(path.Base(file), names)
	if guess == "" {
		return ""
	}
	return fmt.Sprintf(", did you mean %q?", guess)
}
