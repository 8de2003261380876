package git

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/flotilla-sh/flotilla/internal/fault"
)

// gitmodules is the file that says where submodules come from.
const gitmodules = ".gitmodules"

// declaration is what .gitmodules says of one submodule.
type declaration struct {
	url  string
	line int
}

// parseModules reads a .gitmodules: declarations by path. Where two name one
// path, the last counts.
func parseModules(text []byte) (map[string]declaration, error) {
	modules := config.NewModules()
	if err := modules.Unmarshal(text); err != nil {
		return nil, fault.Stall(ReasonSubmodule, fmt.Errorf("it cannot be parsed: %w", err))
	}
	lines := sectionLines(string(text))
	out := map[string]declaration{}
	for name, m := range modules.Submodules {
		at, d := path.Clean(m.Path), declaration{strings.TrimSpace(m.URL), lines[name]}
		if fs.ValidPath(at) && d.line >= out[at].line {
			out[at] = d
		}
	}
	return out, nil
}

// sectionLines finds the line at which each section begins; the parser does not
// tell.
func sectionLines(text string) map[string]int {
	lines, n := map[string]int{}, 0
	for line := range strings.Lines(text) {
		n++
		name, ok := strings.CutPrefix(strings.TrimSpace(line), `[submodule "`)
		if end := strings.LastIndex(name, `"]`); ok && end >= 0 {
			lines[name[:end]] = n
		}
	}
	return lines
}

// declarations reads the .gitmodules of a tree, once. It must be a file: a link
// could lead anywhere.
func (t *tree) declarations() (map[string]declaration, error) {
	if t.declaredBy != nil || t.declaredErr != nil {
		return t.declaredBy, t.declaredErr
	}
	t.declaredBy = map[string]declaration{}
	n, err := t.top().child(gitmodules)
	if errors.Is(err, fs.ErrNotExist) {
		return t.declaredBy, nil
	}
	if err == nil && n.mode != filemode.Regular && n.mode != filemode.Executable && n.mode != filemode.Deprecated {
		err = fault.Stall(ReasonSubmodule, errors.New("it is not a file"))
	}
	var text []byte
	if err == nil {
		text, err = t.blob(n.hash)
	}
	if err == nil {
		t.declaredBy, err = parseModules(text)
	}
	t.declaredErr = err
	return t.declaredBy, err
}

// relativeTo puts a URL that begins with ./ or ../ behind that of the repository
// that names it, as git does.
func relativeTo(base, rel string) (string, error) {
	base, _, _ = strings.Cut(strings.TrimSpace(base), "?")
	server, way, ok := strings.Cut(base, "://")
	if ok {
		host, rest, _ := strings.Cut(way, "/")
		server, way = server+"://"+host+"/", rest
	} else {
		server, way, _ = strings.Cut(base, ":")
		server += ":"
		if strings.HasPrefix(way, "/") {
			server += "/"
		}
	}
	steps := strings.Split(strings.Trim(way, "/"), "/")
	for step := range strings.SplitSeq(rel, "/") {
		switch {
		case step == "" || step == ".":
		case step != "..":
			steps = append(steps, step)
		case len(steps) == 0:
			return "", invalidURL(fmt.Errorf("%q leads out of the server of the repository that names it", rel))
		default:
			steps = steps[:len(steps)-1]
		}
	}
	return server + strings.Join(steps, "/"), nil
}

func isRelative(url string) bool {
	return strings.HasPrefix(url, "./") || strings.HasPrefix(url, "../") || url == ".." || url == "."
}
