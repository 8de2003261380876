package git

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/flotilla-sh/flotilla/internal/fault"
)

// maxLinks is how many symbolic links one name may lead through.
const maxLinks = 40

// find resolves a name, following links.
func (t *tree) find(op, name string) (node, error) {
	if !fs.ValidPath(name) {
		return node{}, pathError(op, name, fs.ErrInvalid)
	}
	n, err := t.resolve(name)
	if err != nil {
		return node{}, pathError(op, name, err)
	}
	n.name = path.Base(name)
	return n, nil
}

// resolve walks down from the root. A link on the way puts its target in front
// of what is left of the name.
func (t *tree) resolve(name string) (node, error) {
	rest := split(name)
	way := []node{t.top()}
	for links := 0; len(rest) > 0; {
		step := rest[0]
		rest = rest[1:]
		if step == ".." {
			if len(way) == 1 {
				return node{}, escapes(name)
			}
			way = way[:len(way)-1]
			continue
		}
		n, err := way[len(way)-1].child(step)
		if err != nil {
			return node{}, err
		}
		if n.mode != filemode.Symlink {
			way = append(way, n)
			continue
		}
		if links++; links > maxLinks {
			return node{}, errors.New("too many symbolic links")
		}
		target, err := n.linkTarget(name)
		if err != nil {
			return node{}, err
		}
		rest = append(target, rest...)
	}
	return way[len(way)-1], nil
}

func split(name string) []string {
	return slices.DeleteFunc(strings.Split(name, "/"), func(s string) bool { return s == "" || s == "." })
}

func escapes(name string) error {
	return fault.Stall("SymlinkEscapes", fmt.Errorf("the symbolic link leads out of the repository; "+
		"replace %s by the file itself or link to one inside", name))
}

func (n node) linkTarget(name string) ([]string, error) {
	target, err := n.in.blob(n.hash)
	if err != nil {
		return nil, err
	}
	if bytes.HasPrefix(target, []byte("/")) {
		return nil, escapes(name)
	}
	return split(string(target)), nil
}

// top is the node of the root.
func (t *tree) top() node { return node{in: t, mode: filemode.Dir, hash: t.root} }

func (n node) child(name string) (node, error) {
	if n.mode == filemode.Submodule {
		n.meet()
	}
	if n.mode != filemode.Dir {
		return node{}, fs.ErrNotExist
	}
	entries, err := n.in.dir(n.hash)
	if err != nil {
		return node{}, err
	}
	e, err := entries.FindEntry(name)
	if err != nil {
		return node{}, fs.ErrNotExist
	}
	found := n.entry(*e)
	if found.mode != filemode.Submodule {
		return found, nil
	}
	if placed := n.in.placed[found.at]; placed != nil {
		return placed.top(), nil
	}
	if !found.declared() {
		return node{}, fs.ErrNotExist
	}
	return found, nil
}
