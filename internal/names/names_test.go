package names

import (
	"regexp"
	"strings"
	"testing"
)

func TestHelmRelease(t *testing.T) {
	fifty := strings.Repeat("1234567890", 5)
	for in, want := range map[string]string{
		fifty + "123":                        fifty + "123",
		fifty + "123a":                       fifty[:47] + "-fdba4",
		"long-name-test-shortpath-with@char": "long-name-test-shortpath-with-char-031bab5e",
		"long-name-test-shortpath-with+char": "long-name-test-shortpath-with-char-21c88393",
		"long-name-test-0.App_ ":             "long-name-test-0-app-5bf6b3fb",
		"long-name-test--App_-_12.factor":    "long-name-test-app-12-factor-0efbac37",
		"bundle.name.example.com":            "bundle-name-example-com-645ef821",
		fifty[:46] + "-1234567":              fifty[:46] + "-d0bce",
		"simple/path":                        "simple-path",
	} {
		if got := helmRelease(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestBundle(t *testing.T) {
	for _, tt := range []struct{ repo, dir, options, want string }{
		{"simple", "../assets/nested_simple", "", "assets-nested-simple-118f9eb2"},
		{"simple", "../assets/nested_multiple/deploymentA", "", "assets-nested-multiple-deploymenta-b6124839"},
		{"simple", "../assets/nested_multiple/deploymentB", "", "assets-nested-multiple-deploymentb-3f5665a4"},
		{"simple", "../assets/nested_multiple/deploymentC", "", "assets-nested-multiple-deploymentc-1fa4c10a"},
		{"repo", ".", "", "repo"},
		{"repo", "/", "", "repo"},
		{"repo", "apps/web", "", "repo-apps-web"},
		{"repo", "apps/web", "dev.yaml", "repo-apps-web-dev"},
		{"repo", "apps/web", "overlays/dev/fleet.yaml", "repo-apps-web-overlays-dev-fleet"},
	} {
		if got := Bundle(tt.repo, tt.dir, tt.options); got != tt.want {
			t.Errorf("%+v: got %q", tt, got)
		}
	}
}

func TestLimit(t *testing.T) {
	for _, tt := range []struct {
		in   string
		n    int
		want string
	}{
		{"12345678", 8, "12345678"},
		{"12345678", 7, "1-25d55"},
		{"123456789", 8, "12-25f9e"},
		{"1-3456789", 8, "1-9b657"},
		{"12345678", 6, "123456"},
		{"12345678", 0, ""},
	} {
		if got := Limit(tt.in, tt.n); got != tt.want {
			t.Errorf("Limit(%q, %d): got %q, want %q", tt.in, tt.n, got, tt.want)
		}
	}
}

func TestSafeConcat(t *testing.T) {
	word := strings.Repeat("a", 56)
	for name, tt := range map[string]struct {
		parts []string
		want  *regexp.Regexp
	}{
		"short":               {[]string{"a", "b"}, regexp.MustCompile(`^a-b$`)},
		"just fits":           {[]string{word, "123456"}, regexp.MustCompile(`^a{56}-123456$`)},
		"cut in a word":       {[]string{word + "b", "123456"}, regexp.MustCompile(`^a{56}b-[0-9a-f]{5}$`)},
		"cut at a dash moves": {[]string{word, "1234567"}, regexp.MustCompile(`^a{56}-[0-9a-f]{6}$`)},
	} {
		t.Run(name, func(t *testing.T) {
			got := SafeConcat(tt.parts...)
			if !tt.want.MatchString(got) || len(got) > 63 {
				t.Errorf("got %q (%d), want %s", got, len(got), tt.want)
			}
		})
	}
}

func TestKeyHashReadsHundredBytes(t *testing.T) {
	long := strings.Repeat("x", 100)
	if KeyHash(long+"a") != KeyHash(long+"b") {
		t.Error("bytes after the hundredth must not matter")
	}
	if KeyHash(long[:99]+"a") == KeyHash(long) {
		t.Error("the hundredth byte must matter")
	}
}

func TestClusterNamespace(t *testing.T) {
	// sha256("fleet-local::local") begins with 1a3d67d0a899.
	if got, want := ClusterNamespace("fleet-local", "local"), "cluster-fleet-local-local-1a3d67d0a899"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	long := ClusterNamespace("fleet-default", strings.Repeat("edge-", 12)+"x")
	if len(long) > 63 || !dnsLabel.MatchString(long) {
		t.Errorf("not a namespace: %q", long)
	}
}

func TestFieldManager(t *testing.T) {
	if got := FieldManager("fleet-default", "web"); got != "flotilla-fleet-default/web" {
		t.Errorf("got %q", got)
	}
	one := FieldManager("fleet-default", strings.Repeat("a", 200)+"1")
	two := FieldManager("fleet-default", strings.Repeat("a", 200)+"2")
	if len(one) != 128 || one == two {
		t.Errorf("got %q (%d) and %q", one, len(one), two)
	}
}

func TestDeploymentLabel(t *testing.T) {
	got := DeploymentLabel("fleet-default", "web")
	if !regexp.MustCompile(`^[0-9a-f]{16}$`).MatchString(got) {
		t.Errorf("got %q", got)
	}
	if got == DeploymentLabel("fleet", "default-web") || got == DeploymentLabel("fleet-defaultw", "eb") {
		t.Error("namespace and name must not run together")
	}
}
