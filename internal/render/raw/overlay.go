package raw

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/source"
)

// ReasonOverlay says that an overlay cannot be laid over the bundle.
const ReasonOverlay = "InvalidOverlay"

// Overlay lays the named overlays over the files, in this order: a file of
// overlays/NAME replaces the one of the same path or is added, a file whose
// name ends in _patch patches the one that it is named after.
func Overlay(files []source.File, names []string) ([]source.File, error) {
	if len(names) == 0 {
		return files, nil
	}
	merged := map[string][]byte{}
	for _, file := range files {
		merged[file.Path] = file.Data
	}
	for _, name := range names {
		if err := lay(merged, files, name); err != nil {
			return nil, fault.Stall(ReasonOverlay, err)
		}
	}
	return sorted(merged), nil
}

// lay lays one overlay over the files.
func lay(merged map[string][]byte, files []source.File, name string) error {
	if !fs.ValidPath(name) || name == "." {
		return fmt.Errorf("yaml.overlays names %q, which is no name of a directory below %s/: correct it", name, overlayDir)
	}
	prefix := path.Join(overlayDir, name) + "/"
	found := false
	for _, file := range files {
		target, ok := strings.CutPrefix(file.Path, prefix)
		if !ok || isConfig(file.Path) {
			continue
		}
		found = true
		if base := patched(target); base != "" {
			if err := patchFile(merged, base, file); err != nil {
				return err
			}
			continue
		}
		merged[target] = file.Data
	}
	if !found {
		return fmt.Errorf("yaml.overlays names %q and the bundle has no files in %s: correct the name or add the directory", name, prefix)
	}
	return nil
}

// patched returns the path, without extension, of the file that a patch is
// for; empty where the file is no patch.
func patched(target string) string {
	base, ok := strings.CutSuffix(strings.TrimSuffix(target, path.Ext(target)), "_patch")
	if !ok || !isManifest(target) {
		return ""
	}
	return base
}

// patchFile patches the file whose path without extension is base.
func patchFile(merged map[string][]byte, base string, patch source.File) error {
	for _, ext := range []string{".yaml", ".yml", ".json"} {
		data, ok := merged[base+ext]
		if !ok {
			continue
		}
		out, err := applyPatch(base+ext, data, patch)
		if err != nil {
			return err
		}
		merged[base+ext] = out
		return nil
	}
	return fault.In(patch.Path, 0, fmt.Errorf("%s is a patch for %s.yaml, which the bundle does not have: correct its name, or drop \"_patch\" from it to add a file", patch.Path, base))
}

func sorted(files map[string][]byte) []source.File {
	out := make([]source.File, 0, len(files))
	for name, data := range files {
		out = append(out, source.File{Path: name, Data: data})
	}
	slices.SortFunc(out, func(a, b source.File) int { return strings.Compare(a.Path, b.Path) })
	return out
}
