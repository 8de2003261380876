package v1alpha1_test

import (
	"strings"
	"testing"
)

const durationMessage = "must be a duration with the units ns, us, µs, ms, s, m and h, such as 15s, 5m or 1h30m, of at most 2562047h; days (d) and weeks (w) are not known: write 24h or 168h"

func TestBadManifestsAreRejectedWithAReason(t *testing.T) {
	crds := loadCRDs(t)
	for name, tt := range map[string]struct {
		kind, body string
		want       []string
	}{
		"GitRepo without a URL": {
			"GitRepo", `spec: {branch: main}`,
			[]string{"spec.repo: Required value"},
		},
		"GitRepo with an empty URL": {
			"GitRepo", `spec: {repo: ""}`,
			[]string{"spec.repo", "should be at least 1 chars long"},
		},
		"polling interval in days": {
			"GitRepo", `spec: {repo: "https://x", pollingInterval: 1d}`,
			[]string{`spec.pollingInterval: Invalid value: "1d": ` + durationMessage},
		},
		"polling interval as a number": {
			"GitRepo", `spec: {repo: "https://x", pollingInterval: 15}`,
			[]string{"spec.pollingInterval", "must be of type string"},
		},
		"negative polling interval": {
			"GitRepo", `spec: {repo: "https://x", pollingInterval: -5s}`,
			[]string{"spec.pollingInterval", durationMessage},
		},
		"empty image scan interval": {
			"GitRepo", `spec: {repo: "https://x", imageScanInterval: ""}`,
			[]string{"spec.imageScanInterval", "should be at least 1 chars long"},
		},
		"one hour too long": {
			"ClusterRegistrationToken", `spec: {ttl: 2562048h}`,
			[]string{"spec.ttl"},
		},
		"duration that overflows": {
			"HelmOp", `spec: {pollingInterval: 99999999999999999999h}`,
			[]string{"spec.pollingInterval"},
		},
		"duration of 33 characters": {
			"ImageScan", `spec: {image: x, interval: 111111111111111111111111111111115m}`,
			[]string{"spec.interval", "may not be more than 32 bytes"},
		},
		"ImageScan without an image": {
			"ImageScan", `spec: {interval: 5m}`,
			[]string{"spec.image: Required value"},
		},
		"paths that are no list": {
			"GitRepo", `spec: {repo: "https://x", paths: apps}`,
			[]string{"spec.paths", "must be of type array"},
		},
		"release name with capitals": {
			"Bundle", `spec: {helm: {releaseName: Web}}`,
			[]string{"spec.helm.releaseName", "should match"},
		},
		"release name of 54 characters": {
			"HelmOp", `spec: {helm: {releaseName: ` + strings.Repeat("a", 54) + `}}`,
			[]string{"spec.helm.releaseName", "may not be more than 53 bytes"},
		},
		"release name of a target": {
			"Bundle", `spec: {targets: [{helm: {releaseName: -web}}]}`,
			[]string{"spec.targets[0].helm.releaseName", "should match"},
		},
		"values that are no object": {
			"Bundle", `spec: {helm: {values: [a]}}`,
			[]string{"spec.helm.values", "must be of type object"},
		},
		"customization mode that is none": {
			"Bundle", `spec: {targetCustomizationMode: Best}`,
			[]string{`Unsupported value: "Best": supported values: "FirstMatch", "AllMatches"`},
		},
		"accepted state that is none": {
			"Bundle", `spec: {dependsOn: [{name: base, acceptedStates: [Done]}]}`,
			[]string{"spec.dependsOn[0].acceptedStates[0]", `Unsupported value: "Done": supported values: "Ready", "NotReady"`},
		},
		"dependency on nothing": {
			"Bundle", `spec: {dependsOn: [{acceptedStates: [Ready]}]}`,
			[]string{"spec.dependsOn[0]", "must specify either name or selector"},
		},
		"copy of what is neither Secret nor ConfigMap": {
			"HelmOp", `spec: {downstreamResources: [{kind: Deployment, name: web}]}`,
			[]string{"spec.downstreamResources[0].kind", `supported values: "Secret", "ConfigMap"`},
		},
		"render where": {
			"Bundle", `spec: {render: laptop}`,
			[]string{"spec.render", `supported values: "auto", "hub", "agent"`},
		},
		"cron with five fields": {
			"Schedule", `spec: {schedule: "0 22 * * *"}`,
			[]string{"spec.schedule", "must be a cron expression of six fields that begins with the seconds"},
		},
		"selector without an operator": {
			"ClusterGroup", `spec: {selector: {matchExpressions: [{key: env}]}}`,
			[]string{"spec.selector.matchExpressions[0].operator: Required value"},
		},
		"environment variable without a name": {
			"Cluster", `spec: {agentEnvVars: [{value: x}]}`,
			[]string{"spec.agentEnvVars[0].name: Required value"},
		},
		"content that is not base64": {
			"Content", `content: "%"`,
			[]string{"content"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			head := "apiVersion: fleet.cattle.io/v1alpha1\nkind: " + tt.kind + "\nmetadata: {name: x}\n"
			_, problems := crds[tt.kind].admit(parse(t, []byte(head+tt.body))[0])
			if len(problems) == 0 {
				t.Fatalf("accepted; want %q", tt.want)
			}
			if !containsAll(problems, tt.want...) {
				t.Errorf("got  %q\nwant %q", problems, tt.want)
			}
		})
	}
}

func TestDurations(t *testing.T) {
	crd := loadCRDs(t)["Schedule"]
	for text, ok := range map[string]bool{
		"0": true, "0s": true, "15s": true, "1h30m": true, "1.5h": true, "100ms": true, "10us": true, "10µs": true, "5ns": true,
		"2562047h": true, "2562047h1s": false, "1d": false, "2w": false, "5": false, "h": false, "+5s": false, "5 m": false, "5M": false, ".5h": false,
	} {
		obj := map[string]any{"metadata": map[string]any{"name": "x"}, "spec": map[string]any{"schedule": "@daily", "duration": text}}
		_, problems := crd.admit(obj)
		if got := len(problems) == 0; got != ok {
			t.Errorf("%q accepted: %v, want %v (%v)", text, got, ok, problems)
		}
	}
}

func TestDefaults(t *testing.T) {
	crds := loadCRDs(t)
	for name, tt := range map[string]struct {
		kind, body, field, want string
	}{
		"scan interval":                  {"ImageScan", `spec: {image: x}`, "interval", "15m"},
		"scan interval that is given":    {"ImageScan", `spec: {image: x, interval: 1h}`, "interval", "1h"},
		"time zone":                      {"Schedule", `spec: {schedule: "@daily"}`, "location", "UTC"},
		"customization mode of a Bundle": {"Bundle", `spec: {}`, "targetCustomizationMode", "FirstMatch"},
		"customization mode of a HelmOp": {"HelmOp", `spec: {}`, "targetCustomizationMode", "FirstMatch"},
	} {
		t.Run(name, func(t *testing.T) {
			obj := parse(t, []byte("metadata: {name: x}\n"+tt.body))[0]
			if _, problems := crds[tt.kind].admit(obj); len(problems) > 0 {
				t.Fatal(problems)
			}
			if got := obj["spec"].(map[string]any)[tt.field]; got != tt.want {
				t.Errorf("%s = %v, want %s", tt.field, got, tt.want)
			}
		})
	}
}
