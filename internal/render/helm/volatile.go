package helm

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"

	"github.com/flotilla-sh/flotilla/internal/digest"
)

// dnsFunction asks the network of the machine that renders.
const dnsFunction = "getHostByName"

// volatile are the template functions whose results differ from one render to
// the next, and why.
var volatile = map[string]string{
	"now": clock, "ago": clock, "date": clock, "dateInZone": clock, "date_in_zone": clock,
	"htmlDate": clock, "htmlDateInZone": clock,
	"keys": unordered, "values": unordered,
	"randAlphaNum": random, "randAlpha": random, "randAscii": random, "randNumeric": random,
	"randBytes": random, "randInt": random, "shuffle": random, "uuidv4": random,
	"genPrivateKey": random, "genCA": random, "genCAWithKey": random,
	"genSelfSignedCert": random, "genSelfSignedCertWithKey": random,
	"genSignedCert": random, "genSignedCertWithKey": random,
	"bcrypt": random, "htpasswd": random, "encryptAES": random,
}

const (
	clock     = "reads the clock"
	unordered = "has no order (sort its result)"
	random    = "is random"
)

// volatileText finds such a function in a text that may be given to tpl.
var volatileText = regexp.MustCompile(`\{\{[^}]*\b(` + strings.Join(volatileNames(), "|") + `)\b`)

func volatileNames() []string {
	names := []string{dnsFunction}
	for name := range volatile {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// needsCluster says why the result is not the same on the hub as on the
// cluster, or "".
func (r *run) needsCluster(texts map[string]string) string {
	if r.in.OnCluster {
		return ""
	}
	if r.lookups > 0 {
		if why := r.needsLookup(texts); why != "" {
			return why
		}
	}
	candidates := r.candidates()
	if why := r.needsDNS(candidates); why != "" {
		return why
	}
	return r.differs(texts, candidates)
}

// candidates returns, for each file that might differ from render to render,
// the calls that would be why.
func (r *run) candidates() map[string][]call {
	texts := r.tplTexts()
	found := map[string][]call{}
	for _, file := range r.loaded.calls.files {
		calls, tpl := r.loaded.calls.reach(file)
		if tpl {
			for _, function := range texts {
				calls = append(calls, call{function, place{file: file}})
			}
		}
		if len(calls) > 0 {
			found[file] = calls
		}
	}
	return found
}

// tplTexts returns the functions that texts call which templates may render.
func (r *run) tplTexts() []string {
	var functions []string
	look := func(text string) {
		for _, match := range volatileText.FindAllStringSubmatch(text, -1) {
			functions = append(functions, match[1])
		}
	}
	for _, text := range r.loaded.calls.texts {
		look(text)
	}
	eachText(map[string]any(freshValues(r.values["Values"])), look)
	slices.Sort(functions)
	return slices.Compact(functions)
}

// eachText calls look with every text of the values.
func eachText(value any, look func(string)) {
	switch v := value.(type) {
	case string:
		if strings.Contains(v, "{{") {
			look(v)
		}
	case map[string]any:
		for _, item := range v {
			eachText(item, look)
		}
	case []any:
		for _, item := range v {
			eachText(item, look)
		}
	}
}

// needsDNS looks for getHostByName. The engine is always told to answer it
// with nothing, so a call cannot be observed.
func (r *run) needsDNS(candidates map[string][]call) string {
	if r.in.DisableDNS {
		return ""
	}
	for _, file := range r.loaded.calls.files {
		for _, c := range candidates[file] {
			if c.function == dnsFunction {
				return fmt.Sprintf("%s asks the cluster's network (%s); set helm.disableDNS to render without", r.place(c.at), dnsFunction)
			}
		}
	}
	return ""
}

// differs renders the candidates a second time and says which differ.
func (r *run) differs(first map[string]string, candidates map[string][]call) string {
	doubtful := r.doubtful(first, candidates)
	if len(doubtful) == 0 {
		return ""
	}
	keep := func(file string) bool { return doubtful[file] != "" || r.loaded.calls.defining[file] }
	if r.differing(first, only(r.chart, keep)) != "" {
		// A template may have seen what another one, left out above, sets.
		if file := r.differing(first, r.chart); file != "" {
			return fmt.Sprintf("%s differs between two renders of the same input%s", r.path(file), r.because(candidates[file]))
		}
	}
	for _, key := range doubtful {
		r.stable.Put(key, struct{}{}, len(key))
	}
	return ""
}

// doubtful returns the candidates that have an effect, and a key for what they
// rendered to. Those that an earlier render of the chart made the same text of
// are beyond doubt: nothing random comes twice.
func (r *run) doubtful(first map[string]string, candidates map[string][]call) map[string]string {
	doubtful := map[string]string{}
	for file := range candidates {
		text, ok := first[file]
		if !ok || strings.TrimSpace(text) == "" {
			continue
		}
		key := digest.Of([]byte(r.in.Digest), []byte(file), []byte(text))
		if _, known := r.stable.Get(key); !known && r.effect(file, text) != "" {
			doubtful[file] = key
		}
	}
	return doubtful
}

// differing renders c and returns the first file with another text than before.
func (r *run) differing(first map[string]string, c *chart.Chart) string {
	second, err := r.render(c, &recordLookups{})
	if err != nil {
		return ""
	}
	for _, file := range r.loaded.calls.files {
		text, ok := second[file]
		if ok && text != first[file] && r.effect(file, text) != r.effect(file, first[file]) {
			return file
		}
	}
	return ""
}

// because names the function that is most probably the cause.
func (r *run) because(calls []call) string {
	rank := []string{random, clock, unordered}
	for _, why := range rank {
		for _, c := range calls {
			if volatile[c.function] == why {
				return fmt.Sprintf(": %s %s (%s)", c.function, why, r.place(c.at))
			}
		}
	}
	return ""
}

// only returns a chart with those of its templates that keep wants, and all
// partials.
func only(c *chart.Chart, keep func(string) bool) *chart.Chart {
	out := *c
	out.Templates = nil
	for _, file := range c.Templates {
		if file == nil {
			continue
		}
		if strings.HasPrefix(path.Base(file.Name), "_") || keep(path.Join(c.ChartFullPath(), file.Name)) {
			out.Templates = append(out.Templates, file)
		}
	}
	deps := c.Dependencies()
	out.SetDependencies()
	for _, dep := range deps {
		out.AddDependency(only(dep, keep))
	}
	return &out
}
