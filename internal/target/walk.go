package target

import (
	"slices"
	"text/template/parse"
)

// walk visits every node below n, children first.
func walk(n parse.Node, visit func(parse.Node)) {
	for _, child := range children(n) {
		walk(child, visit)
	}
	visit(n)
}

func children(n parse.Node) []parse.Node {
	switch n := n.(type) {
	case *parse.ListNode:
		return slices.Clone(n.Nodes)
	case *parse.ActionNode:
		return []parse.Node{n.Pipe}
	case *parse.PipeNode:
		out := make([]parse.Node, len(n.Cmds))
		for i, command := range n.Cmds {
			out[i] = command
		}
		return out
	case *parse.CommandNode:
		return n.Args
	case *parse.ChainNode:
		return []parse.Node{n.Node}
	case *parse.IfNode:
		return branches(&n.BranchNode)
	case *parse.RangeNode:
		return branches(&n.BranchNode)
	case *parse.WithNode:
		return branches(&n.BranchNode)
	}
	return nil
}

func branches(n *parse.BranchNode) []parse.Node {
	out := []parse.Node{n.Pipe, n.List}
	if n.ElseList != nil {
		out = append(out, n.ElseList)
	}
	return out
}

// references returns the keys that a template names outright, as in
// .ClusterLabels.env and index .ClusterLabels "env".
func references(tree *parse.Tree) []Reference {
	var out []Reference
	walk(tree.Root, func(n parse.Node) {
		switch n := n.(type) {
		case *parse.FieldNode:
			out = appendReference(out, n.Ident)
		case *parse.VariableNode:
			if n.Ident[0] == "$" {
				out = appendReference(out, n.Ident[1:])
			}
		case *parse.CommandNode:
			out = appendIndexed(out, n.Args)
		}
	})
	return out
}

func appendReference(out []Reference, ident []string) []Reference {
	if len(ident) < 2 {
		return out
	}
	return append(out, Reference{ident[0], ident[1]})
}

func appendIndexed(out []Reference, args []parse.Node) []Reference {
	const name, of, key = 0, 1, 2
	if len(args) <= key {
		return out
	}
	function, ok := args[name].(*parse.IdentifierNode)
	field, isField := args[of].(*parse.FieldNode)
	text, isText := args[key].(*parse.StringNode)
	if ok && isField && isText && function.Ident == "index" {
		out = appendReference(out, append(slices.Clone(field.Ident), text.Text))
	}
	return out
}
