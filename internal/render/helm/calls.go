package helm

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"text/template/parse"

	"helm.sh/helm/v3/pkg/chart"
)

// callGraph is which template of a chart calls which function and which other
// template. It finds candidates only: whether a call is made depends on the
// values.
type callGraph struct {
	templates map[string]*callNode
	files     []string // those that are rendered, sorted
	defining  map[string]bool
	texts     []string // texts of the chart that tpl may be given
	walksAPIs bool
}

// callNode is one template: a file, or what a define in it holds.
type callNode struct {
	functions []call
	templates []string
	dynamic   bool // includes a template whose name is computed
	tpl       bool // renders texts as templates
	changes   bool // may change the values that others see
}

// call is a place where a function is called.
type call struct {
	function string
	at       place
}

// walksAPIs finds .Capabilities.APIVersions without its Has method.
var walksAPIs = regexp.MustCompile(`\.APIVersions\b(?:[^.]|\.[^H])`)

// newCallGraph reads all templates of a chart and its sub-charts.
func newCallGraph(c *chart.Chart) *callGraph {
	g := &callGraph{templates: map[string]*callNode{}, defining: map[string]bool{}}
	eachTemplate(c, func(name string, text []byte) { g.addFile(name, string(text)) })
	g.addTexts(c)
	slices.Sort(g.files)
	return g
}

func (g *callGraph) addTexts(c *chart.Chart) {
	for _, file := range c.Files {
		if text := string(file.Data); strings.Contains(text, "{{") {
			g.texts = append(g.texts, text)
		}
	}
	for _, dep := range c.Dependencies() {
		g.addTexts(dep)
	}
}

// addFile reads one template file. One that cannot be parsed is left out: the
// engine will say so better.
func (g *callGraph) addFile(name, text string) {
	trees := map[string]*parse.Tree{}
	tree := parse.New(name)
	tree.Mode = parse.SkipFuncCheck
	if _, err := tree.Parse(text, "", "", trees); err != nil {
		return
	}
	if !strings.HasPrefix(path.Base(name), "_") {
		g.files = append(g.files, name)
	}
	g.walksAPIs = g.walksAPIs || walksAPIs.MatchString(text)
	for _, defined := range trees {
		g.defining[name] = g.defining[name] || defined.Name != name
		w := walker{node: g.node(defined.Name), file: name, text: text}
		w.walk(defined.Root)
	}
}

func (g *callGraph) node(name string) *callNode {
	if g.templates[name] == nil {
		g.templates[name] = &callNode{}
	}
	return g.templates[name]
}

// walker reads one template into its node.
type walker struct {
	node       *callNode
	file, text string
}

func (w *walker) walk(n parse.Node) {
	switch n := n.(type) {
	case *parse.ListNode:
		if n != nil {
			for _, child := range n.Nodes {
				w.walk(child)
			}
		}
	case *parse.ActionNode:
		w.walk(n.Pipe)
	case *parse.IfNode:
		w.branch(&n.BranchNode)
	case *parse.RangeNode:
		w.branch(&n.BranchNode)
	case *parse.WithNode:
		w.branch(&n.BranchNode)
	case *parse.TemplateNode:
		w.node.templates = append(w.node.templates, n.Name)
		w.walk(n.Pipe)
	case *parse.PipeNode:
		if n != nil {
			for _, command := range n.Cmds {
				w.command(command)
			}
		}
	case *parse.ChainNode:
		w.walk(n.Node)
	case *parse.IdentifierNode:
		w.function(n)
	}
}

func (w *walker) branch(n *parse.BranchNode) {
	w.walk(n.Pipe)
	w.walk(n.List)
	w.walk(n.ElseList)
}

func (w *walker) command(n *parse.CommandNode) {
	for i, arg := range n.Args {
		w.walk(arg)
		if id, ok := arg.(*parse.IdentifierNode); ok && i == 0 && id.Ident == "include" {
			w.include(n.Args[1:])
		}
	}
}

// include notes a template that is included by name.
func (w *walker) include(args []parse.Node) {
	if len(args) > 0 {
		if name, ok := args[0].(*parse.StringNode); ok {
			w.node.templates = append(w.node.templates, name.Text)
			return
		}
	}
	w.node.dynamic = true
}

func (w *walker) function(n *parse.IdentifierNode) {
	switch n.Ident {
	case "tpl":
		w.node.tpl = true
	case "set", "unset", "merge", "mergeOverwrite", "mustMerge", "mustMergeOverwrite":
		w.node.changes = true
	}
	if _, ok := volatile[n.Ident]; ok || n.Ident == dnsFunction {
		line := 1 + strings.Count(w.text[:n.Pos], "\n")
		w.node.functions = append(w.node.functions, call{n.Ident, place{w.file, line}})
	}
}

// visit calls see with a rendered file's template and all that it may include.
func (g *callGraph) visit(file string, see func(*callNode)) {
	seen := map[string]bool{}
	var follow func(name string)
	follow = func(name string) {
		node := g.templates[name]
		if node == nil || seen[name] {
			return
		}
		seen[name] = true
		see(node)
		for _, called := range node.templates {
			follow(called)
		}
		if node.dynamic {
			for _, other := range slices.Sorted(maps.Keys(g.templates)) {
				follow(other)
			}
		}
	}
	follow(file)
}

// reach returns the calls that a rendered file may make, itself and through
// what it includes, and whether it renders texts as templates.
func (g *callGraph) reach(file string) (calls []call, tpl bool) {
	g.visit(file, func(node *callNode) {
		calls = append(calls, node.functions...)
		tpl = tpl || node.tpl
	})
	return calls, tpl
}

// changes tells whether a rendered file may change what other files see, or
// may do anything at all because it renders texts as templates.
func (g *callGraph) changes(file string) bool {
	changes := false
	g.visit(file, func(node *callNode) { changes = changes || node.changes || node.tpl })
	return changes
}
