package templating

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReads(t *testing.T) {
	all := []string{"ClusterAnnotations", "ClusterLabels", "ClusterName", "ClusterNamespace", "ClusterValues"}
	for text, want := range map[string][]string{
		"plain":                                                         nil,
		"${ .ClusterName }":                                             {"ClusterName"},
		"${ .ClusterLabels.env }":                                       {"ClusterLabels env"},
		"${ $.ClusterLabels.env }":                                      {"ClusterLabels env"},
		`${ get .ClusterLabels "a b" }`:                                 {"ClusterLabels a b"},
		`${ index $.ClusterLabels "a" }`:                                {"ClusterLabels a"},
		`${ hasKey .ClusterValues "a" }`:                                {"ClusterValues a"},
		`${ index .ClusterLabels .ClusterName }`:                        {"ClusterLabels", "ClusterName"},
		`${ set .ClusterValues "a" 1 }`:                                 {"ClusterValues"},
		`${ get .ClusterValues "" }`:                                    {"ClusterValues"},
		"${ .ClusterValues.a.b }":                                       {"ClusterValues a"},
		"${ .ClusterValues | toJson }":                                  {"ClusterValues"},
		"${ $v := .ClusterValues }${ $v.a }":                            {"ClusterValues"},
		"${ $v := . }${ $v.ClusterValues.a }":                           all,
		"${ $ | toJson }":                                               all,
		"${ . }":                                                        all,
		"${ range .ClusterValues.l }${ . }${ .x }${ end }":              {"ClusterValues l"},
		"${ range .ClusterValues.l }${ else }${ . }${ end }":            append([]string{"ClusterValues l"}, ""),
		"${ with .ClusterValues.a }${ .b }${ $.ClusterName }${ end }":   {"ClusterName", "ClusterValues a"},
		"${ if .ClusterLabels.a }${ .ClusterLabels.b }${ else }x${end}": {"ClusterLabels a", "ClusterLabels b"},
		"${ (index .ClusterValues \"a\").b }":                           {"ClusterValues a"},
		"${ (.).ClusterName }":                                          all,
	} {
		c := ForValues()
		if _, err := c.Value(text, "x"); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		var got []string
		for _, r := range c.Reads() {
			got = append(got, strings.TrimSpace(r.Root+" "+r.Key))
		}
		if len(want) > 0 && want[len(want)-1] == "" {
			if len(got) != len(all)+1 {
				t.Errorf("%s: reads %q", text, got)
			}
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}

// probe is a cluster whose every part differs from that of other.
func probe(suffix string) *Cluster {
	return &Cluster{
		Namespace: "ns" + suffix, Name: "n" + suffix,
		Labels:      map[string]string{"a": "la" + suffix, "b": "lb" + suffix},
		Annotations: map[string]string{"a": "aa" + suffix, "b": "ab" + suffix},
		Values:      map[string]any{"a": map[string]any{"b": "va" + suffix}, "b": "vb" + suffix, "l": []any{"x" + suffix}},
	}
}

// depends tells whether what eval gives differs between two clusters whose
// answers to all that is read are the same. It must not.
func depends(t *testing.T, text string) {
	t.Helper()
	c := ForObjects()
	eval, err := c.Value(text, "x")
	if err != nil {
		return
	}
	one := NewScope(probe("1"))
	same := NewScope(probe("2"))
	for _, r := range c.Reads() {
		if _, isMap := same.data[r.Root].(map[string]any); r.Key == "" || !isMap {
			same.data[r.Root] = NewScope(probe("1")).data[r.Root]
			continue
		}
		below := same.data[r.Root].(map[string]any)
		delete(below, r.Key)
		if value, ok := one.data[r.Root].(map[string]any)[r.Key]; ok {
			below[r.Key] = own(value)
		}
	}
	c.Reset()
	a, errA := eval(NewScope(probe("1")))
	c.Reset()
	b, errB := eval(same)
	if (errA == nil) != (errB == nil) || errA == nil && fmt.Sprint(a) != fmt.Sprint(b) {
		t.Errorf("%q reads more than it says (%v): %v, %v and %v, %v", text, c.Reads(), a, errA, b, errB)
	}
}

// seeds are templates of all shapes.
func seeds() []string {
	return []string{
		"", "plain", "${", "${ }", "${ .ClusterName }", "a${ .ClusterLabels.a }b", `${ get .ClusterLabels "b" | upper }`, "${ .ClusterValues.l }",
		`${ $x := .ClusterValues }${ $x.b }`, "${ range $k, $v := .ClusterLabels }${ $k }${ $v }${ end }", `${ with .ClusterValues.a }${ .b }${ end }`,
		`${ define "a" }${ end }`, "${ . }", "${ $ }", `${ tpl "x" . }`, "${ range until 100000 }${ end }", "${ repeat 1000000 \"x\" }", "${ now }",
		`${ $_ := set .ClusterValues "z" 1 }${ len .ClusterValues }`, `${ dig "a" "b" "none" .ClusterValues }`, "${ .ClusterValues.l | toJson }",
		`${ index .ClusterValues "a" "b" }`, `${ range .ClusterValues.l }${ . }${ else }${ $.ClusterName }${ end }`, "global.fleet.clusterLabels.a",
		`${ (.ClusterValues).b }`, `${ if and .ClusterName .ClusterLabels.b }1${ end }`, `${ omit .ClusterLabels "a" | values | sortAlpha }`, "${/* x */}", "${- .ClusterName -}",
		`${ fail "x" }`, `${ list .ClusterName 1 }`, "${ break }", "${ range .ClusterValues.l }${ continue }${ end }", "${ slice .ClusterName 1 }", "${ print nil }",
	}
}

func TestSeedsReadWhatTheySay(t *testing.T) {
	for _, text := range seeds() {
		depends(t, text)
	}
}

func FuzzTemplate(f *testing.F) {
	for _, text := range seeds() {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		depends(t, text)
		cluster := probe("1")
		for _, c := range []*Compiler{ForValues(), ForObjects()} {
			eval, err := c.Value(map[string]any{text: "x", "key": []any{text}}, "x")
			if err != nil {
				continue
			}
			first, errFirst := eval(NewScope(cluster))
			c.Reset()
			second, errSecond := eval(NewScope(cluster))
			if fmt.Sprint(first, errFirst) != fmt.Sprint(second, errSecond) {
				t.Errorf("%q gives %v, %v and then %v, %v", text, first, errFirst, second, errSecond)
			}
		}
		if diff := cmp.Diff(probe("1"), cluster); diff != "" {
			t.Errorf("%q changed the cluster: %s", text, diff)
		}
	})
}
