package names

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

func FuzzNames(f *testing.F) {
	for _, seed := range []string{
		"", "-", "/", "a", "A", "a/b", "../x", "a--b", "1234567890", "long-name-test--App_-_12.factor", "bundle.name.example.com", "ümläut", "\x00", "-a-", "a.b/c.d",
		strings.Repeat("a", 53), strings.Repeat("a-", 40), strings.Repeat("a", 47) + "-" + strings.Repeat("b", 10), strings.Repeat("x", 200),
	} {
		f.Add(seed, "apps/web", "dev.yaml")
		f.Add("repo", seed, "")
		f.Add("repo", "apps", seed)
	}
	f.Fuzz(func(t *testing.T, repo, dir, options string) {
		name := Bundle(repo, dir, options)
		if errs := validation.IsDNS1123Label(name); len(errs) > 0 || len(name) > maxRelease {
			t.Errorf("Bundle(%q, %q, %q) is %q: %v", repo, dir, options, name, errs)
		}
		if again := helmRelease(name); again != name {
			t.Errorf("%q is a name, and becomes %q", name, again)
		}
		for n := range 70 {
			if short := Limit(dir, n); len(short) > n {
				t.Errorf("Limit(%q, %d) is %q", dir, n, short)
			}
		}
		if joined := SafeConcat(repo, dir); len(joined) > maxObject {
			t.Errorf("SafeConcat(%q, %q) is %q", repo, dir, joined)
		}
		if manager := FieldManager(repo, dir); len(manager) > maxManager {
			t.Errorf("FieldManager(%q, %q) is %q", repo, dir, manager)
		}
		if len(DeploymentLabel(repo, dir)) != 16 || len(KeyHash(dir)) != 12 {
			t.Error("a hash has another length")
		}
	})
}
