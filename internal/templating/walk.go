package templating

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
