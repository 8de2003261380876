package render

import (
	"maps"
	"slices"
	"strings"

	"github.com/flotilla-sh/flotilla/internal/digest"
	"github.com/flotilla-sh/flotilla/internal/render/helm"
	"github.com/flotilla-sh/flotilla/internal/templating"
)

// The questions that a render may ask about a cluster. Everything else is the
// name of an API.
const (
	askVersion    = "kubeVersion"
	askMajor      = "kubeVersion.major"
	askMinor      = "kubeVersion.minor"
	askConstraint = "kubeVersion " // and a constraint
	askScope      = "scope "       // and group/Kind
	askTemplate   = "template "    // and a root, and perhaps a key
	askAll        = "apis"
)

// cluster answers questions from the capabilities and records them. A render
// asks few questions of the hundreds of kinds that a cluster serves, so there
// is no index of them.
type cluster struct {
	version string
	apis    []API
	asked   map[string]bool
	known   *templating.Scope // nil where no templates are filled in
}

// newCluster returns the cluster of a request. What is not known is
// as Helm takes it for granted.
func newCluster(req *Request) *cluster {
	caps := &req.Capabilities
	c := &cluster{version: caps.KubeVersion, apis: caps.APIs, asked: map[string]bool{}}
	if req.Cluster != nil {
		c.known = templating.NewScope(req.Cluster)
	}
	if c.version == "" {
		c.version = helm.DefaultVersion()
	}
	return c
}

// serves tells whether the cluster has a group/version or a group/version/Kind.
func (c *cluster) serves(name string) bool {
	if len(c.apis) == 0 {
		return slices.Contains(helm.DefaultAPIs(), name)
	}
	return slices.ContainsFunc(c.apis, func(a API) bool {
		rest, ok := strings.CutPrefix(name, a.GroupVersion)
		return ok && (rest == "" || rest[0] == '/' && rest[1:] == a.Kind)
	})
}

// scope is that of a kind, by group/Kind; empty where it is not known.
func (c *cluster) scope(kind string) string {
	for i := range c.apis {
		if groupKind(c.apis[i].GroupVersion, c.apis[i].Kind) == kind {
			return scopeText(c.apis[i].Namespaced)
		}
	}
	return ""
}

// ask answers a question and records it.
func (c *cluster) ask(question string) string {
	c.asked[question] = true
	return c.answer(question)
}

// answer answers a question.
func (c *cluster) answer(question string) string {
	switch {
	case question == askVersion:
		return c.version
	case question == askMajor:
		return versionPart(c.version, 0)
	case question == askMinor:
		return versionPart(c.version, 1)
	case question == askAll:
		return digest.OfBytes([]byte(strings.Join(c.sorted(), "\n")))
	case strings.HasPrefix(question, askConstraint):
		return yesNo(helm.Satisfies(strings.TrimPrefix(question, askConstraint), c.version))
	case strings.HasPrefix(question, askTemplate):
		return c.seen(strings.TrimPrefix(question, askTemplate))
	case strings.HasPrefix(question, askScope):
		return c.scope(strings.TrimPrefix(question, askScope))
	}
	return yesNo(c.serves(question))
}

// sorted returns all that the cluster serves, by group/version and by
// group/version/Kind.
func (c *cluster) sorted() []string {
	if len(c.apis) == 0 {
		return slices.Sorted(slices.Values(helm.DefaultAPIs()))
	}
	all := map[string]bool{}
	for _, api := range c.apis {
		all[api.GroupVersion] = true
		if api.Kind != "" {
			all[api.GroupVersion+"/"+api.Kind] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// seen answers what templates see at a reference.
func (c *cluster) seen(reference string) string {
	if c.known == nil {
		return ""
	}
	root, key, _ := strings.Cut(reference, " ")
	return c.known.Answer(templating.Reference{Root: root, Key: key})
}

// TemplateQuestions are the questions to ask where it is not known what the
// templates of a bundle read.
func TemplateQuestions() []string {
	var out []string
	for _, root := range templating.Roots() {
		out = append(out, templateQuestion(root))
	}
	return out
}

func templateQuestion(r templating.Reference) string {
	return strings.TrimSuffix(askTemplate+r.Root+" "+r.Key, " ")
}

// questions returns what was asked, sorted.
func (c *cluster) questions() []string { return slices.Sorted(maps.Keys(c.asked)) }

// The methods of helm.Capabilities.

// KubeVersion implements helm.Capabilities.
func (c *cluster) KubeVersion() string { return c.ask(askVersion) }

// KubeMajor implements helm.Capabilities.
func (c *cluster) KubeMajor() string { return c.ask(askMajor) }

// KubeMinor implements helm.Capabilities.
func (c *cluster) KubeMinor() string { return c.ask(askMinor) }

// Satisfies implements helm.Capabilities.
func (c *cluster) Satisfies(constraint string) bool { return c.ask(askConstraint+constraint) == yes }

// Has implements helm.Capabilities.
func (c *cluster) Has(api string) bool { return c.ask(api) == yes }

// All implements helm.Capabilities.
func (c *cluster) All() []string {
	c.ask(askAll)
	return c.sorted()
}

// Answers returns what the cluster of a request answers to the questions that a render asked,
// in their order. The questions are kubeVersion, its parts, a constraint on
// it, an API by group/version or group/version/Kind, the scope of a kind, what
// templates read, and all APIs together.
func Answers(asked []string, req *Request) []string {
	if len(asked) == 0 {
		return nil
	}
	c := newCluster(req)
	answers := make([]string, len(asked))
	for i, question := range asked {
		answers[i] = c.answer(question)
	}
	return answers
}

// Lacking returns the APIs that a render asked for and the cluster of the request
// has not.
func Lacking(asked []string, req *Request) []string {
	c := newCluster(req)
	return slices.DeleteFunc(slices.Clone(asked), func(question string) bool { return c.answer(question) != no || strings.Contains(question, " ") })
}

const (
	yes = "yes"
	no  = "no"
)

func yesNo(b bool) string {
	if b {
		return yes
	}
	return no
}

// versionPart returns the first or second number of a version such as v1.36.3.
func versionPart(version string, index int) string {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if index >= len(parts) {
		return ""
	}
	return parts[index]
}

// ParseAPIs reads what an agent reports of its cluster, lines of
// "group/version/Kind N" or "group/version/Kind C". Lines that it does not
// understand are left out: a newer agent may write more.
func ParseAPIs(text string) []API {
	var out []API
	for line := range strings.Lines(text) {
		name, scope, ok := strings.Cut(strings.TrimSpace(line), " ")
		slash := strings.LastIndexByte(name, '/')
		if !ok || slash < 0 || scope != "N" && scope != "C" {
			continue
		}
		out = append(out, API{GroupVersion: name[:slash], Kind: name[slash+1:], Namespaced: scope == "N"})
	}
	return out
}
