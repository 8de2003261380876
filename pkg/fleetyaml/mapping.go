package fleetyaml

import "gopkg.in/yaml.v3"

// pair is a key of a mapping with its value.
type pair struct{ key, value *yaml.Node }

// pairs returns the keys of a mapping in order. A key that is there twice keeps
// its last value and is warned of; merged keys (<<) give way to others.
func (d *decoder) pairs(n *yaml.Node, at place) []pair {
	var out, merged []pair
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := resolve(n.Content[i]), n.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode:
			d.fail(key, at.path, "a key of %s is %s; keys must be strings", quoted(at.path), found(key))
			continue
		case key.ShortTag() == tagMerge:
			merged = append(merged, d.merged(value, at)...)
			continue
		}
		if first, twice := seen[key.Value]; twice {
			d.duplicate(key, out[first].key, at)
			out[first] = pair{key, value}
			continue
		}
		seen[key.Value] = len(out)
		out = append(out, pair{key, value})
	}
	return appendNew(out, merged)
}

func (d *decoder) duplicate(key, first *yaml.Node, at place) {
	path := at.key(key.Value).path
	d.warn(key, path, "%q is given twice, first in line %d; the last one counts", path, first.Line)
}

// merged returns what a merge key brings: a mapping, or a list of them of which
// the first wins.
func (d *decoder) merged(n *yaml.Node, at place) []pair {
	n = resolve(n)
	below := at.key("<<")
	if !d.enter(n, below) {
		return nil
	}
	switch n.Kind {
	case yaml.MappingNode:
		return d.pairs(n, below)
	case yaml.SequenceNode:
		var out []pair
		for _, item := range n.Content {
			out = appendNew(out, d.merged(item, below))
		}
		return out
	}
	d.fail(n, below.path, "%q must be an alias of an object, or a list of them", below.path)
	return nil
}

// appendNew appends those of more whose keys pairs does not have.
func appendNew(pairs, more []pair) []pair {
	if len(more) == 0 {
		return pairs
	}
	seen := make(map[string]bool, len(pairs)+len(more))
	for _, p := range pairs {
		seen[p.key.Value] = true
	}
	for _, p := range more {
		if !seen[p.key.Value] {
			seen[p.key.Value] = true
			pairs = append(pairs, p)
		}
	}
	return pairs
}
