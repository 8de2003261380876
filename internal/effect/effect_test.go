package effect_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-sh/flotilla/internal/effect"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// eachField calls visit with the JSON name of each field of the struct type T
// and a value in which that field alone is set.
func eachField[T any](visit func(name string, value *T)) {
	for field := range reflect.TypeFor[T]().Fields() {
		value := new(T)
		fill(reflect.ValueOf(value).Elem().FieldByIndex(field.Index))
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		visit(name, value)
	}
}

// fill sets v to something that is not empty.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint8:
		v.SetUint(1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem())
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	}
}

// expect compares what is said of a field with whether it acts.
func expect(t *testing.T, name string, acts []string, said []string, want string) {
	t.Helper()
	if slices.Contains(acts, name) {
		if len(said) > 0 {
			t.Errorf("%s acts, but %v are said to have no effect", name, said)
		}
		return
	}
	if !slices.Equal(said, []string{want}) {
		t.Errorf("%s: said to have no effect: %v, want %s; a new field either acts or is named", name, said, want)
	}
}

func TestEveryFieldOfAGitRepo(t *testing.T) {
	acts := strings.Fields("repo branch revision targetNamespace clientSecretName caBundle insecureSkipTLSVerify paths bundles " +
		"paused serviceAccount targets pollingInterval chartPollingInterval helmSecretName helmSecretNameForPaths helmRepoURLRegex disablePolling forceSyncGeneration keepResources deleteNamespace correctDrift ociRegistrySecret verify webhookSecret")
	eachField(func(name string, spec *fleet.GitRepoSpec) {
		expect(t, name, acts, effect.OfGitRepo(spec), "spec."+name)
	})
}

func TestEveryFieldOfACluster(t *testing.T) {
	acts := strings.Fields("paused templateValues")
	eachField(func(name string, spec *fleet.ClusterSpec) {
		expect(t, name, acts, effect.OfCluster(spec), "spec."+name)
	})
}

func TestEveryOptionOfABundle(t *testing.T) {
	// Those that are held are not said to have no effect.
	held := "serviceAccount allowedTargetNamespaceSelector render templateManifests "
	// What is asked for is so without: objects that move are handed over.
	needless := "overwrites "
	acts := strings.Fields(held + needless + "defaultNamespace namespace kustomize helm createNamespace forceSyncGeneration yaml diff " +
		"keepResources ignore correctDrift deleteCRDResources deleteNamespace namespaceLabels namespaceAnnotations downstreamResources")
	eachField(func(name string, o *fleet.BundleDeploymentOptions) {
		expect(t, name, acts, effect.OfBundle(&fleet.BundleSpec{BundleDeploymentOptions: *o}), name)
		target := fleet.BundleTarget{BundleDeploymentOptions: *o}
		expect(t, name, acts, effect.OfBundle(&fleet.BundleSpec{Targets: []fleet.BundleTarget{target, target}}), name)
	})
}

func TestEveryHelmOptionOfABundle(t *testing.T) {
	// There are no Helm revisions to be kept.
	needless := "maxHistory "
	acts := strings.Fields(needless + "chart repo releaseName version values templateValues valuesFrom force takeOwnership timeoutSeconds waitForJobs atomic valuesFiles " +
		"disablePreProcess disableDNS skipSchemaValidation disableDependencyUpdate")
	eachField(func(name string, helm *fleet.HelmOptions) {
		spec := fleet.BundleSpec{}
		spec.Helm = helm
		expect(t, name, acts, effect.OfBundle(&spec), "helm."+name)
	})
}

func TestOfBundle(t *testing.T) {
	spec := fleet.BundleSpec{RolloutStrategy: &fleet.RolloutStrategy{}}
	spec.CorrectDrift = &fleet.CorrectDrift{Enabled: true, Force: true, KeepFailHistory: true}
	spec.Targets = []fleet.BundleTarget{{}}
	spec.Targets[0].NamespaceLabels = map[string]string{"team": "web", "pod-security.kubernetes.io/enforce": "privileged", "kubernetes.io/metadata.name": "x"}
	want := []string{"namespaceLabels[kubernetes.io/metadata.name]", "namespaceLabels[pod-security.kubernetes.io/enforce]", "rolloutStrategy"}
	if diff := cmp.Diff(want, effect.OfBundle(&spec)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestHolds(t *testing.T) {
	helm := func(h fleet.HelmOptions) fleet.BundleDeploymentOptions {
		return fleet.BundleDeploymentOptions{Helm: &h}
	}
	for name, tt := range map[string]struct {
		options fleet.BundleDeploymentOptions
		want    []string // parts of the reason; none where nothing holds
	}{
		"nothing":            {},
		"hub renders":        {options: fleet.BundleDeploymentOptions{Render: fleet.RenderHub}},
		"auto":               {options: fleet.BundleDeploymentOptions{Render: fleet.RenderAuto}},
		"chart in the files": {options: helm(fleet.HelmOptions{Chart: "./chart", Version: "1", ReleaseName: "x"})},
		"service account":    {options: fleet.BundleDeploymentOptions{ServiceAccount: "limited"}},
		"namespace selector": {fleet.BundleDeploymentOptions{AllowedTargetNamespaceSelector: &metav1.LabelSelector{}}, []string{"allowedTargetNamespaceSelector"}},
		"helm repository":    {options: helm(fleet.HelmOptions{Repo: "https://charts.example", Chart: "x"})},
	} {
		t.Run(name, func(t *testing.T) {
			got := effect.Holds(&tt.options)
			if (got != "") != (len(tt.want) > 0) {
				t.Fatalf("held: %q, want %q", got, tt.want)
			}
			for _, part := range tt.want {
				if !strings.Contains(got, part) {
					t.Errorf("%q does not tell of %q", got, part)
				}
			}
		})
	}
}

func TestCondition(t *testing.T) {
	if got := effect.Condition(nil); got.Status != "True" || got.Message != "" {
		t.Errorf("got %+v, want that all is effective", got)
	}
	got := effect.Condition([]string{"a", "b"})
	if got.Status != "False" || got.Reason != "NotYetEffective" || got.Message != "accepted, but without effect yet: a, b" {
		t.Errorf("got %+v", got)
	}
}
