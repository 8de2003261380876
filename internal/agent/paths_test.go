package agent_test

import (
	"fmt"
	"strings"
	"time"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// path is one way of deployments through their life.
type path struct {
	// before brings them to where the path begins, and begin sends them on
	// their way.
	before, begin func(w *world)
	// arrived is satisfied by each bundle at the end.
	arrived map[string]func(*fleet.BundleDeployment) error
	// settle is how long the agent waits before objects leave a bundle.
	settle time.Duration
	// after changes once more what is wanted.
	after func(w *world)
	// left are the ConfigMaps that there are in the end, with their values.
	left map[string]string
	rules
	// tellsNothingNew is true where the agent tells the hub what it tells on
	// other paths: these writes go wrong there.
	tellsNothingNew bool
	// check looks at what else there is in the end.
	check func(w *world, j *judge)
}

type arrivals = map[string]func(*fleet.BundleDeployment) error

// maps makes ConfigMaps, given as name and value in turn.
func (w *world) maps(namesAndValues ...string) []string {
	var texts []string
	for i := 0; i < len(namesAndValues); i += 2 {
		texts = append(texts, configMap(w.ns("shop"), namesAndValues[i], namesAndValues[i+1]))
	}
	return texts
}

// deploys makes a bundle of ConfigMaps.
func deploys(bundle string, namesAndValues ...string) func(w *world) {
	return func(w *world) { w.deploy(bundle, w.maps(namesAndValues...)) }
}

// removes marks a bundle.
func removes(bundle string) func(w *world) {
	return func(w *world) { w.deploy(bundle, nil, marked) }
}

func inTurn(steps ...func(w *world)) func(w *world) {
	return func(w *world) {
		for _, step := range steps {
			step(w)
		}
	}
}

// hooked makes a bundle with hooks of each kind, and a ConfigMap.
func hooked(value string) func(w *world) {
	return func(w *world) {
		shop := w.ns("shop")
		w.deploy("web", append(w.maps("a", value),
			job(shop, "first", `helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-weight: "-1", helm.sh/hook-delete-policy: hook-succeeded`),
			job(shop, "second", `helm.sh/hook: "pre-install,pre-upgrade"`),
			job(shop, "last", `helm.sh/hook: "post-install,post-upgrade"`),
			job(shop, "drain", `helm.sh/hook: pre-delete`),
			job(shop, "clean", `helm.sh/hook: post-delete, helm.sh/hook-delete-policy: hook-succeeded`),
		))
	}
}

// waved makes a bundle of three waves.
func waved(value string) func(w *world) {
	return func(w *world) {
		shop := w.ns("shop")
		w.deploy("web", []string{
			inWave("2", configMap(shop, "last", value)), inWave("-1", configMap(shop, "first", value)),
			strings.Replace(deployment(shop, "db"), "app:1", "app:"+value, 1),
		})
	}
}

// charted makes a bundle that its cluster renders, with a random value.
func charted(value string) func(w *world) {
	return func(w *world) {
		w.deploySource("web", chart+"-- templates/cm.yaml --\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {key: \""+value+"\", random: \"{{ randAlphaNum 12 }}\"}\n",
			fleet.BundleDeploymentOptions{DefaultNamespace: w.ns("shop")})
	}
}

// returned is satisfied once a release has failed and the one before is back.
func returned(bd *fleet.BundleDeployment) error {
	if !strings.Contains(deployedMessage(bd), "; went back to what ran before (helm.atomic)") || bd.Status.AppliedDeploymentID == "" ||
		bd.Status.ObservedGeneration != bd.Generation {
		return fmt.Errorf("status: %+v", bd.Status)
	}
	return nil
}

// gone is satisfied once a deployment is removed.
func gone(bd *fleet.BundleDeployment) error {
	if bd.Status.RemovalState == nil || !bd.Status.RemovalState.Done {
		return fmt.Errorf("removal: %+v", bd.Status.RemovalState)
	}
	return nil
}

// owns checks that objects are a bundle's alone.
func (w *world) owns(bundle string, kindsAndNames ...string) {
	w.t.Helper()
	for i := 0; i < len(kindsAndNames); i += 2 {
		got := w.must(kindsAndNames[i], w.ns("shop"), kindsAndNames[i+1])
		if owner := got.GetAnnotations()[fleet.BundleAnnotation]; owner != w.namespace+"/"+bundle {
			w.t.Errorf("%s belongs to %s", kindsAndNames[i+1], owner)
		}
		for _, e := range got.GetManagedFields() {
			if strings.HasPrefix(e.Manager, "flotilla-") && e.Manager != "flotilla-"+w.namespace+"/"+bundle {
				w.t.Errorf("%s still has fields of %s: %s", e.Manager, kindsAndNames[i+1], e.FieldsV1)
			}
		}
	}
}

// paths are the ways on which something goes wrong.
var paths = map[string]path{
	"install": {
		begin: deploys("web", "a", "1", "b", "1"), arrived: arrivals{"web": ready},
		left: map[string]string{"a": "1", "b": "1"}, rules: rules{kept: []string{"a", "b"}},
	},
	"upgrade": {
		before: deploys("web", "a", "1", "old", "1"), begin: deploys("web", "a", "2", "new", "1", "brief", "1"),
		arrived: arrivals{"web": ready},
		// What Git has dropped again meanwhile is not left behind.
		after: deploys("web", "a", "3", "new", "1"), left: map[string]string{"a": "3", "new": "1"},
		rules: rules{kept: []string{"a", "new"}},
	},
	"undressing": {
		tellsNothingNew: true,
		before:          func(w *world) { w.deploy("web", w.maps("a", "1"), dressing(w.ns("shop"), "team", "web")) },
		begin:           func(w *world) { w.deploy("web", w.maps("a", "1"), dressing(w.ns("shop"), "stage", "prod")) },
		after:           func(w *world) { w.deploy("web", w.maps("a", "1"), dressing(w.ns("shop"))) },
		arrived:         arrivals{"web": ready}, left: map[string]string{"a": "1"}, rules: rules{kept: []string{"a"}},
		check: func(w *world, _ *judge) { w.wears(w.ns("shop"), nil) },
	},
	"removal": {
		before: deploys("web", "a", "1", "b", "1"), begin: removes("web"), arrived: arrivals{"web": gone},
	},
	"hand-over": {
		settle:  100 * time.Millisecond,
		before:  inTurn(deploys("from", "stays", "1", "moves", "1"), deploys("to", "other", "1")),
		begin:   inTurn(deploys("from", "stays", "1"), deploys("to", "other", "1", "moves", "2")),
		arrived: arrivals{"from": ready, "to": ready}, left: map[string]string{"stays": "1", "moves": "2", "other": "1"},
		rules: rules{kept: []string{"stays", "moves", "other"}},
		check: func(w *world, _ *judge) { w.owns("to", "v1/ConfigMap", "moves", "v1/ConfigMap", "other") },
	},
	"rename": {
		settle: 100 * time.Millisecond,
		before: func(w *world) { w.deploy("old", append(w.maps("a", "1", "b", "1"), deployment(w.ns("shop"), "db"))) },
		begin: func(w *world) {
			removes("old")(w)
			w.deploy("new", append(w.maps("a", "1", "b", "2"), deployment(w.ns("shop"), "db")))
		},
		arrived: arrivals{"old": gone, "new": ready}, left: map[string]string{"a": "1", "b": "2"},
		rules: rules{kept: []string{"a", "b", "db"}},
		check: func(w *world, _ *judge) {
			w.owns("new", "v1/ConfigMap", "a", "v1/ConfigMap", "b", "apps/v1/Deployment", "db")
		},
	},
	"install with hooks": {
		tellsNothingNew: true,
		begin:           hooked("1"), arrived: arrivals{"web": ready}, left: map[string]string{"a": "1"},
		rules: rules{
			kept:  []string{"a"},
			order: []string{"made first", "ended first", "made second", "ended second", "wrote a 1", "made last", "ended last", "web is Ready at generation 1"},
		},
		check: func(_ *world, j *judge) { j.ranOnce("first", "second", "last") },
	},
	"upgrade with hooks": {
		tellsNothingNew: true,
		before:          deploys("web", "a", "1"), begin: hooked("2"), arrived: arrivals{"web": ready}, left: map[string]string{"a": "2"},
		rules: rules{
			kept:  []string{"a"},
			order: []string{"made first", "ended first", "made second", "ended second", "wrote a 2", "made last", "ended last", "web is Ready at generation 2"},
		},
		check: func(_ *world, j *judge) { j.ranOnce("first", "second", "last") },
	},
	"removal with hooks": {
		before: hooked("1"), begin: removes("web"), arrived: arrivals{"web": gone},
		rules: rules{order: []string{"made drain", "ended drain", "gone a", "made clean", "ended clean", "gone clean"}},
		check: func(w *world, j *judge) {
			j.ranOnce("drain", "clean")
			for _, name := range []string{"first", "second", "last", "drain", "clean"} {
				w.absent("batch/v1/Job", w.ns("shop"), name)
			}
		},
	},
	"waves": {
		tellsNothingNew: true,
		before:          waved("1"), begin: waved("2"), arrived: arrivals{"web": ready}, left: map[string]string{"first": "2", "last": "2"},
		rules: rules{kept: []string{"first", "db", "last"}, order: []string{
			"wrote first 1", "wrote db 1", "rolled out db 1", "wrote last 1", "wrote first 2", "wrote db 2", "rolled out db 2", "wrote last 2",
		}},
	},
	"install of a chart": {
		tellsNothingNew: true,
		begin:           charted("1"), arrived: arrivals{"web": ready}, left: map[string]string{"a": "1"}, rules: rules{kept: []string{"a"}},
	},
	"upgrade of a chart": {
		tellsNothingNew: true,
		before:          charted("1"), begin: charted("2"), arrived: arrivals{"web": ready}, left: map[string]string{"a": "2"}, rules: rules{kept: []string{"a"}},
	},
	"atomic upgrade that fails": {
		tellsNothingNew: true,
		before:          func(w *world) { w.deploy("web", w.maps("a", "1", "old", "1"), helm(fleet.HelmOptions{Atomic: true})) },
		begin: func(w *world) {
			w.deploy("web", append(w.maps("a", "2", "new", "1"), job(w.ns("shop"), "fails", "helm.sh/hook: post-upgrade")), helm(fleet.HelmOptions{Atomic: true}))
		},
		arrived: arrivals{"web": returned}, left: map[string]string{"a": "1", "old": "1"},
		rules: rules{kept: []string{"a"}, returns: true, order: []string{"wrote a 1", "wrote a 2", "made fails", "ended fails"}},
		check: func(w *world, j *judge) {
			j.ranOnce("fails")
			bd := w.status("web")
			if good := w.firsts["web"]; bd.Status.AppliedDeploymentID != good {
				w.t.Errorf("%s runs, not %s", bd.Status.AppliedDeploymentID, good)
			}
		},
	},
}
