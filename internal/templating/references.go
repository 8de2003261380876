package templating

import (
	"cmp"
	"slices"
	"text/template/parse"
)

// Reference is something that a template reads of what is known of a cluster: a
// key of one of the roots, or a whole root where Key is empty.
type Reference struct{ Root, Key string }

func (r Reference) compare(other Reference) int {
	return cmp.Or(cmp.Compare(r.Root, other.Root), cmp.Compare(r.Key, other.Key))
}

// references are what a template reads.
type references struct {
	// reads is all that the result can depend on.
	reads []Reference
	// named are the keys that the template cannot do without, as in
	// .ClusterLabels.env and index .ClusterLabels "env".
	named []Reference
}

func findReferences(tree *parse.Tree) references {
	var r references
	r.visit(tree.Root, false)
	return r
}

// visit looks at a node. derived is set where the dot is no longer all that is
// known but something that was read before, as inside range and with.
func (r *references) visit(n parse.Node, derived bool) {
	switch n := n.(type) {
	case *parse.DotNode:
		if !derived {
			r.all()
		}
	case *parse.FieldNode:
		// Inside range and with it may be a field of something else; then too
		// much is said to be read, which does no harm.
		r.path(n.Ident)
	case *parse.VariableNode:
		if n.Ident[0] == "$" {
			r.path(n.Ident[1:])
		}
	case *parse.CommandNode:
		r.command(n, derived)
	case *parse.RangeNode:
		r.branch(&n.BranchNode, derived)
	case *parse.WithNode:
		r.branch(&n.BranchNode, derived)
	default:
		for _, child := range children(n) {
			r.visit(child, derived)
		}
	}
}

func (r *references) branch(n *parse.BranchNode, derived bool) {
	r.visit(n.Pipe, derived)
	r.visit(n.List, true)
	if n.ElseList != nil {
		r.visit(n.ElseList, derived)
	}
}

func (r *references) all() { r.reads = append(r.reads, Roots()...) }

// path takes the names behind a dot.
func (r *references) path(ident []string) {
	switch {
	case len(ident) == 0:
		r.all()
	case !isRoot(ident[0]):
	case len(ident) == 1:
		r.reads = append(r.reads, Reference{Root: ident[0]})
	default:
		found := Reference{ident[0], ident[1]}
		r.reads, r.named = append(r.reads, found), append(r.named, found)
	}
}

// command takes a call such as index .ClusterLabels "env", which reads one key
// of a root and not the whole.
func (r *references) command(n *parse.CommandNode, derived bool) {
	const name, of, key = 0, 1, 2
	args := n.Args
	if len(args) > key {
		function, _ := args[name].(*parse.IdentifierNode)
		text, isText := args[key].(*parse.StringNode)
		root, isMap := mapRoot(args[of])
		if function != nil && isText && isMap && text.Text != "" && slices.Contains([]string{"index", "get", "hasKey"}, function.Ident) {
			found := Reference{root, text.Text}
			r.reads = append(r.reads, found)
			if function.Ident == "index" {
				r.named = append(r.named, found)
			}
			args = args[key+1:]
		}
	}
	for _, arg := range args {
		r.visit(arg, derived)
	}
}

// mapRoot tells which root an argument is as a whole, where it is a map.
func mapRoot(n parse.Node) (string, bool) {
	var ident []string
	switch n := n.(type) {
	case *parse.FieldNode:
		ident = n.Ident
	case *parse.VariableNode:
		if n.Ident[0] == "$" {
			ident = n.Ident[1:]
		}
	}
	if len(ident) != 1 {
		return "", false
	}
	return ident[0], slices.Contains([]string{rootLabels, rootAnnotations, rootValues}, ident[0])
}
