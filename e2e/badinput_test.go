package e2e

import (
	"context"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// badInput is an input that cannot work, what its GitRepo must say, and how it
// is mended.
type badInput struct {
	// files are the first commit; none leaves the repository empty.
	files files
	// prepare does what must be done before the GitRepo is there.
	prepare func(*testing.T, *world, *repository)
	// change makes the GitRepo wrong, and mend makes it right again.
	change, mend func(*fleet.GitRepo)
	// fix is the commit that makes the repository right.
	fix files
	// says are the parts of the message that a person needs.
	says []string
}

func (b badInput) run(t *testing.T, name string) {
	t.Parallel()
	w := shared
	r := w.repository(t, name)
	commit := ""
	if b.files != nil {
		commit = r.commit(b.files)
	}
	if b.prepare != nil {
		b.prepare(t, w, r)
	}
	change := b.change
	if change == nil {
		change = func(*fleet.GitRepo) {}
	}
	repo := w.declare(t, name, r, change)
	w.says(t, repo, b.says...)
	eventually(t, "flotilla status", func() error { return says(w.statusText(t, name), b.says...) })
	if b.mend != nil {
		w.edit(t, repo, b.mend)
	}
	if b.fix != nil {
		commit = r.commit(b.fix)
	}
	w.rolledOut(t, repo, commit)
	if said := w.statusText(t, name); says(said, b.says...) == nil {
		t.Errorf("flotilla status still has it: %s", said)
	}
}

func TestBadRepository(t *testing.T) {
	for name, b := range map[string]badInput{
		"bad-url": {
			files:  app("bad-url", "1"),
			change: func(g *fleet.GitRepo) { g.Spec.Repo = "http://127.0.0.1:1/bad-url.git" },
			says:   []string{"cannot reach the Git server 127.0.0.1:1", "connection refused", "check the URL"},
			mend:   func(g *fleet.GitRepo) { g.Spec.Repo = strings.TrimSuffix(shared.status.Git.URL, "/") + "/bad-url.git" },
		},
		"bad-login": {
			files: app("bad-login", "1"),
			prepare: func(t *testing.T, w *world, r *repository) {
				w.gitUsers(t, r, map[string]string{"deployer": "right"})
				w.login(t, "bad-login", "deployer", "right")
			},
			says: []string{"bad-login.git asks for a login", "kubernetes.io/basic-auth", "clientSecretName"},
			mend: func(g *fleet.GitRepo) { g.Spec.ClientSecretName = "bad-login" },
		},
		"bad-secret": {
			files:  app("bad-secret", "1"),
			change: func(g *fleet.GitRepo) { g.Spec.ClientSecretName = "bad-secrets" },
			says:   []string{"spec.clientSecretName", "no secret bad-secrets in namespace fleet-default", "correct the name"},
			mend:   func(g *fleet.GitRepo) { g.Spec.ClientSecretName = "" },
		},
	} {
		t.Run(name, func(t *testing.T) { b.run(t, name) })
	}
}

func TestBadReference(t *testing.T) {
	for name, b := range map[string]badInput{
		"bad-branch": {
			files:  app("bad-branch", "1"),
			change: func(g *fleet.GitRepo) { g.Spec.Branch = "mian" },
			says:   []string{`branch "mian" not found`, `did you mean "main"?`},
			mend:   func(g *fleet.GitRepo) { g.Spec.Branch = "main" },
		},
		"bad-tag": {
			files: app("bad-tag", "1"),
			prepare: func(_ *testing.T, _ *world, r *repository) {
				r.git("tag", "v1.2.3")
				r.git("push", "--quiet", "origin", "v1.2.3")
			},
			change: func(g *fleet.GitRepo) { g.Spec.Revision = "v1.2.4" },
			says:   []string{`revision "v1.2.4"`, `did you mean "v1.2.3"?`},
			mend:   func(g *fleet.GitRepo) { g.Spec.Revision = "v1.2.3" },
		},
		"bad-commit": {
			files:  app("bad-commit", "1"),
			change: func(g *fleet.GitRepo) { g.Spec.Revision = strings.Repeat("1a", 20) },
			says:   []string{strings.Repeat("1a", 20), "is in no branch or tag"},
			mend:   func(g *fleet.GitRepo) { g.Spec.Revision = "" },
		},
		"bad-empty": {
			prepare: func(t *testing.T, w *world, _ *repository) {
				if err := w.gitServer(t).Create(t.Context(), "bad-empty"); err != nil {
					t.Fatal(err)
				}
			},
			says: []string{"bad-empty.git is empty", "push a commit to it"},
			fix:  app("bad-empty", "1"),
		},
		"bad-path": {
			files:  app("bad-path", "1"),
			change: func(g *fleet.GitRepo) { g.Spec.Paths = []string{"apps"} },
			says:   []string{`path "apps" matches no directory at commit`, `did you mean "app"?`},
			mend:   func(g *fleet.GitRepo) { g.Spec.Paths = []string{"app"} },
		},
	} {
		t.Run(name, func(t *testing.T) { b.run(t, name) })
	}
}

// chart is a directory with a chart of one template.
func chart(name, template string) files {
	return files{
		"app/fleet.yaml":        "defaultNamespace: " + name + "\n",
		"app/Chart.yaml":        "apiVersion: v2\nname: " + name + "\nversion: 1.0.0\n",
		"app/templates/cm.yaml": template,
	}
}

func TestBadDirectory(t *testing.T) {
	const endless = `{{ define "again" }}{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}{{ end }}{{ include "again" . }}`
	for name, b := range map[string]badInput{
		"bad-type": {
			files: files{"app/fleet.yaml": "defaultNamespace: bad-type\nhelm:\n  releaseName: [a]\n", "app/cm.yaml": configMapYAML("bad-type", "1")},
			says:  []string{"app/fleet.yaml:3", "helm.releaseName"},
			fix:   app("bad-type", "1"),
		},
		"bad-template": {
			files: chart("bad-template", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Values.app.name }}\n"),
			says:  []string{"templates/cm.yaml:4", "app.name"},
			fix:   files{"app/values.yaml": "app: {name: bad-template}\n"},
		},
		"bad-loop": {
			files: chart("bad-loop", endless),
			says:  []string{"rendering bundle bad-loop-app did not end within 10s", "a template probably never ends"},
			fix:   files{"app/templates/cm.yaml": configMapYAML("bad-loop", "1")},
		},
		"bad-yaml": {
			files: files{"app/fleet.yaml": "defaultNamespace: bad-yaml\n", "app/cm.yaml": configMapYAML("bad-yaml", "1"), "app/notes.yaml": "\nkind: World\n"},
			says:  []string{"notes.yaml:2", "this is no Kubernetes object, apiVersion is missing (it has kind)", ".fleetignore"},
			fix:   files{"app/notes.yaml": ""},
		},
		"bad-huge": {
			files: files{"app/fleet.yaml": "defaultNamespace: bad-huge\n", "app/cm.yaml": configMapYAML("bad-huge", noise(2_500_000))},
			says:  []string{"bad-huge", "is too large: 2", "compressed", "1 MiB per object"},
			fix:   app("bad-huge", "1"),
		},
		"bad-large": {
			files: files{"app/fleet.yaml": "defaultNamespace: bad-large\n", "app/cm.yaml": configMapYAML("bad-large", strings.Repeat("1", 1_200_000))},
			says:  []string{"bad-large/bad-large", "1048576"},
			fix:   app("bad-large", "1"),
		},
	} {
		t.Run(name, func(t *testing.T) { b.run(t, name) })
	}
}

// noise is a text that does not become smaller by compression than by half.
func noise(size int) string {
	raw := make([]byte, size/2)
	source := rand.NewChaCha8([32]byte{})
	_, _ = source.Read(raw)
	return hex.EncodeToString(raw)
}

func TestBadForCluster(t *testing.T) {
	for name, b := range map[string]badInput{
		"bad-owner": {
			files: files{
				"one/fleet.yaml": "defaultNamespace: bad-owner\n", "one/cm.yaml": configMapYAML("bad-owner", "1"),
				"two/fleet.yaml": "defaultNamespace: bad-owner\n", "two/cm.yaml": configMapYAML("bad-owner", "2"),
			},
			says: []string{"bad-owner/bad-owner", "it belongs to bundle fleet-default/bad-owner-", "remove it from one of the two"},
			fix:  files{"two/cm.yaml": configMapYAML("another", "2")},
		},
		"bad-kind": {
			files: files{
				"app/fleet.yaml": "defaultNamespace: bad-kind\n", "app/cm.yaml": configMapYAML("bad-kind", "1"),
				"app/widget.yaml": "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: first}\n",
			},
			says: []string{"first", "has no kind Widget in example.com/v1", "CustomResourceDefinition"},
			fix:  files{"app/widget.yaml": ""},
		},
	} {
		t.Run(name, func(t *testing.T) { b.run(t, name) })
	}
}

// What has no effect is no reason to hold anything back.
func TestUnknownFieldIsAWarning(t *testing.T) {
	t.Parallel()
	w := shared
	r := w.repository(t, "unknown")
	repo := w.declare(t, "unknown", r)
	content := app("unknown", "1")
	content["app/fleet.yaml"] += "helm:\n  relaseName: unknown\n"
	w.rolledOut(t, repo, r.commit(content))
	w.hasValue(t, "unknown", "unknown", "1", all...)
	w.warns(t, repo, "app/fleet.yaml:3", "relaseName", `did you mean "releaseName"?`)
	w.rolledOut(t, repo, r.commit(app("unknown", "2")))
	w.warns(t, repo)
}

// warns waits until the GitRepo has a warning with all these parts; none means
// that it has no warning.
func (w *world) warns(t *testing.T, repo *fleet.GitRepo, parts ...string) {
	t.Helper()
	eventually(t, "warnings of "+repo.Name, func() error {
		got, err := w.gitRepo(repo)
		if err != nil {
			return err
		}
		c := fleet.FindCondition(got.Status.Conditions, fleet.ConditionWarnings)
		if c == nil || (c.Status == metav1.ConditionTrue) != (len(parts) > 0) {
			return fmt.Errorf("the condition is %+v", c)
		}
		return says(c.Message, parts...)
	})
}

func TestClusterThatLacksALabelIsHeldBackAlone(t *testing.T) {
	w := shared
	setLabel(t, w, "dev", `"gold"`)
	setLabel(t, w, "staging", `"silver"`)
	r := w.repository(t, "tiers")
	repo := w.declare(t, "tiers", r)
	commit := r.commit(files{
		"app/fleet.yaml":        "defaultNamespace: tiers\nhelm:\n  values:\n    tier: ${ .ClusterLabels.tier }\n",
		"app/Chart.yaml":        "apiVersion: v2\nname: tiers\nversion: 1.0.0\n",
		"app/templates/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: tiers}\ndata: {value: {{ .Values.tier | quote }}}\n",
	})
	w.hasValue(t, "tiers", "tiers", "gold", "dev")
	w.hasValue(t, "tiers", "tiers", "silver", "staging")
	w.says(t, repo, "cluster fleet-default/prod", "helm.values.tier", `the cluster has no label "tier"`,
		"kubectl label clusters.fleet.cattle.io -n fleet-default prod tier=VALUE")
	if err := gone(w.configMap("prod", "tiers", "tiers")); err != nil {
		t.Error(err)
	}
	setLabel(t, w, "prod", `"bronze"`)
	w.rolledOut(t, repo, commit)
	w.hasValue(t, "tiers", "tiers", "bronze", "prod")
}

// setLabel gives a cluster the label "tier", as JSON, until the test ends.
func setLabel(t *testing.T, w *world, cluster, value string) {
	t.Helper()
	c := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: registration, Name: cluster}}
	patch := func(value string) client.Patch {
		return client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"tier":`+value+`}}}`))
	}
	if err := w.hub.Patch(t.Context(), c, patch(value)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.hub.Patch(context.Background(), c, patch("null")); err != nil {
			t.Error(err)
		}
	})
}
