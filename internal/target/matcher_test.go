package target

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// custom makes a target whose serviceAccount tells that it was merged.
func custom(name, env string, doNotDeploy bool) fleet.BundleTarget {
	return fleet.BundleTarget{
		Name: name, ClusterSelector: selector("env", env), DoNotDeploy: doNotDeploy,
		BundleDeploymentOptions: fleet.BundleDeploymentOptions{NamespaceLabels: map[string]string{name: "yes"}},
	}
}

func TestChoice(t *testing.T) {
	prod := fleet.BundleTarget{Name: "git-prod", ClusterSelector: selector("env", "prod")}
	restriction := fleet.BundleTargetRestriction{Name: "git-prod", ClusterSelector: selector("env", "prod")}
	const none = "-"
	for name, tt := range map[string]struct {
		spec fleet.BundleSpec
		// want is the target, wantCustom the customizations of the cluster env=prod.
		want       string
		wantCustom []string
	}{
		"no targets": {spec: fleet.BundleSpec{}, want: none},
		"plain targets: the first wins": {
			spec: fleet.BundleSpec{Targets: []fleet.BundleTarget{custom("a", "dev", false), custom("b", "prod", false), prod}},
			want: "b",
		},
		"plain target says no": {
			spec: fleet.BundleSpec{Targets: []fleet.BundleTarget{custom("a", "prod", true), prod}},
			want: none,
		},
		"restricted to others": {
			spec: fleet.BundleSpec{
				Targets:            []fleet.BundleTarget{custom("a", "prod", false), prod},
				TargetRestrictions: []fleet.BundleTargetRestriction{{ClusterName: "two"}},
			},
			want: none,
		},
		"a customization is no target": {
			spec: fleet.BundleSpec{
				Targets:            []fleet.BundleTarget{custom("a", "prod", false), {Name: "dev", ClusterSelector: selector("env", "dev")}},
				TargetRestrictions: []fleet.BundleTargetRestriction{restriction},
			},
			want: none,
		},
		"first customization": {
			spec: fleet.BundleSpec{
				Targets:            []fleet.BundleTarget{custom("x", "dev", false), custom("a", "prod", false), custom("b", "prod", true), prod},
				TargetRestrictions: []fleet.BundleTargetRestriction{restriction},
			},
			want: "git-prod", wantCustom: []string{"a"},
		},
		"no customization": {
			spec: fleet.BundleSpec{
				Targets:            []fleet.BundleTarget{custom("x", "dev", false), prod},
				TargetRestrictions: []fleet.BundleTargetRestriction{restriction},
			},
			want: "git-prod",
		},
		"customization says no": {
			spec: fleet.BundleSpec{
				Targets:            []fleet.BundleTarget{custom("a", "prod", true), custom("b", "prod", false), prod},
				TargetRestrictions: []fleet.BundleTargetRestriction{restriction},
			},
			want: none,
		},
		"all customizations": {
			spec: fleet.BundleSpec{
				TargetCustomizationMode: fleet.AllMatches,
				Targets:                 []fleet.BundleTarget{custom("a", "prod", false), custom("x", "dev", true), custom("b", "prod", false), prod},
				TargetRestrictions:      []fleet.BundleTargetRestriction{restriction},
			},
			want: "git-prod", wantCustom: []string{"a", "b"},
		},
		"one of all customizations says no": {
			spec: fleet.BundleSpec{
				TargetCustomizationMode: fleet.AllMatches,
				Targets:                 []fleet.BundleTarget{custom("a", "prod", false), custom("b", "prod", true), prod},
				TargetRestrictions:      []fleet.BundleTargetRestriction{restriction},
			},
			want: none,
		},
	} {
		t.Run(name, func(t *testing.T) {
			subject := cluster("one", "env", "prod")
			got := assign(t, tt.spec, subject)
			m, err := NewMatcher(bundleOf(tt.spec))
			if err != nil || m.MayMatch(&subject) != (tt.want != none) {
				t.Errorf("MayMatch disagrees (%v)", err)
			}
			if tt.want == none {
				if len(got) > 0 {
					t.Fatalf("got %+v, want none", got)
				}
				return
			}
			if len(got) != 1 || got[0].Err != nil {
				t.Fatalf("got %+v", got)
			}
			if diff := cmp.Diff(tt.wantCustom, got[0].Customizations); got[0].Target != tt.want || diff != "" {
				t.Errorf("target %q, customizations %s", got[0].Target, diff)
			}
			for _, custom := range tt.wantCustom {
				if got[0].Options.NamespaceLabels[custom] != "yes" {
					t.Errorf("options of %s are not merged: %v", custom, got[0].Options)
				}
			}
			if len(tt.wantCustom) > 0 && len(got[0].Options.NamespaceLabels) != len(tt.wantCustom) {
				t.Errorf("labels of other targets leak in: %v", got[0].Options.NamespaceLabels)
			}
		})
	}
}

func TestOrderOfClustersDoesNotMatter(t *testing.T) {
	clusters := []Cluster{cluster("a", "env", "prod"), cluster("b"), cluster("c", "env", "dev"), cluster("d", "env", "prod")}
	spec := toAll(helmValues(map[string]any{"env": `${ get .ClusterLabels "env" }`}))
	spec.Targets = append([]fleet.BundleTarget{custom("p", "prod", false)}, spec.Targets...)
	want := assign(t, spec, slices.Clone(clusters)...)
	for range 20 {
		rand.Shuffle(len(clusters), func(i, j int) { clusters[i], clusters[j] = clusters[j], clusters[i] })
		if diff := cmp.Diff(want, assign(t, spec, clusters...)); diff != "" {
			t.Fatal(diff)
		}
	}
}

func TestEqualClustersShareOptions(t *testing.T) {
	got := assign(t, toAll(helmValues(map[string]any{"a": 1})), cluster("a"), cluster("b", "env", "dev"))
	if len(got) != 2 || got[0].Options != got[1].Options {
		t.Error("options that depend on no cluster should be made once")
	}
}

func TestPaused(t *testing.T) {
	paused := cluster("b")
	paused.Paused = true
	got := assign(t, toAll(fleet.BundleDeploymentOptions{}), cluster("a"), paused)
	if got[0].Paused || !got[1].Paused {
		t.Errorf("got %+v", got)
	}
	spec := toAll(fleet.BundleDeploymentOptions{})
	spec.Paused = true
	if got := assign(t, spec, cluster("a")); !got[0].Paused {
		t.Error("a paused bundle pauses all")
	}
}

func TestAffected(t *testing.T) {
	spec := toAll(fleet.BundleDeploymentOptions{})
	spec.Targets[0].ClusterSelector = selector("env", "prod")
	plain, err := NewMatcher(bundleOf(spec))
	if err != nil {
		t.Fatal(err)
	}
	spec.BundleDeploymentOptions = helmValues(map[string]any{"a": "${ .ClusterName }"})
	templated, err := NewMatcher(bundleOf(spec))
	if err != nil {
		t.Fatal(err)
	}
	change := func(edit func(*Cluster)) *Cluster {
		c := cluster("one", "env", "prod")
		edit(&c)
		return &c
	}
	objects := toAll(fleet.BundleDeploymentOptions{TemplateManifests: true})
	objects.Targets = spec.Targets
	filled, err := NewMatcher(bundleOf(objects))
	if err != nil {
		t.Fatal(err)
	}
	same, stranger := change(func(*Cluster) {}), change(func(c *Cluster) { c.Labels = nil })
	for name, tt := range map[string]struct {
		before, after        *Cluster
		plainly, asTemplated bool
	}{
		"nothing":            {same, change(func(*Cluster) {}), false, false},
		"comes":              {nil, same, true, true},
		"goes":               {same, nil, true, true},
		"a stranger comes":   {nil, stranger, false, false},
		"leaves the target":  {same, stranger, true, true},
		"a label":            {same, change(func(c *Cluster) { c.Labels["x"] = "y" }), false, true},
		"a label of its own": {same, change(func(c *Cluster) { c.Labels["rio.cattle.io/x"] = "y" }), false, false},
		"an annotation":      {same, change(func(c *Cluster) { c.Annotations = map[string]string{"x": "y"} }), false, true},
		"template values":    {same, change(func(c *Cluster) { c.TemplateValues = map[string]any{"x": "y"} }), false, true},
		"paused":             {same, change(func(c *Cluster) { c.Paused = true }), true, true},
		"a group of no use":  {same, change(func(c *Cluster) { c.Groups = []Group{{Name: "g"}} }), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := plain.Affected(tt.before, tt.after); got != tt.plainly {
				t.Errorf("plain: got %v", got)
			}
			if got := templated.Affected(tt.before, tt.after); got != tt.asTemplated {
				t.Errorf("templated: got %v", got)
			}
			if got := filled.Affected(tt.before, tt.after); got != tt.asTemplated {
				t.Errorf("with templates in objects: got %v", got)
			}
		})
	}
}

// What Affected calls unaffected must lead to the same assignment.
func TestUnaffectedMeansEqual(t *testing.T) {
	spec := toAll(helmValues(map[string]any{"a": `${ get .ClusterLabels "x" }`}))
	spec.Targets = []fleet.BundleTarget{
		custom("p", "prod", false), custom("d", "dev", true),
		{Name: "x", ClusterSelector: selector("x", "1")}, {Name: "g", ClusterGroup: "g"},
	}
	spec.TargetRestrictions = []fleet.BundleTargetRestriction{{ClusterSelector: selector("x", "1")}, {ClusterGroup: "g"}}
	m, err := NewMatcher(bundleOf(spec))
	if err != nil {
		t.Fatal(err)
	}
	pick := func() Cluster {
		c := cluster("one")
		c.Labels = map[string]string{"env": []string{"prod", "dev", "none"}[rand.IntN(3)], "x": []string{"1", "2"}[rand.IntN(2)]}
		if rand.IntN(2) == 0 {
			c.Groups = []Group{{Name: "g"}}
		}
		return c
	}
	for range 500 {
		before, after := pick(), pick()
		was, is := m.Assign([]Cluster{before}), m.Assign([]Cluster{after})
		for i := range was {
			was[i].Cluster = nil
		}
		for i := range is {
			is[i].Cluster = nil
		}
		if !m.Affected(&before, &after) && !cmp.Equal(was, is) {
			t.Fatalf("%v to %v: %s", before, after, cmp.Diff(was, is))
		}
	}
}
