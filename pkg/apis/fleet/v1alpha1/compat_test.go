package v1alpha1_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// column is what kubectl shows of a kind: name and JSON path.
type column [2]string

const readyMessage = `.status.conditions[?(@.type=="Ready")].message`

func TestKindsAsKubectlShowsThem(t *testing.T) {
	crds := loadCRDs(t)
	for kind, columns := range map[string][]column{
		"Bundle":                   {{"BundleDeployments-Ready", ".status.display.readyClusters"}, {"Status", readyMessage}},
		"BundleDeployment":         {{"Deployed", ".status.display.deployed"}, {"Monitored", ".status.display.monitored"}, {"Status", readyMessage}},
		"BundleNamespaceMapping":   nil,
		"Cluster":                  {{"Bundles-Ready", ".status.display.readyBundles"}, {"Online", `.status.conditions[?(@.type=="Online")].status`}, {"Last-Seen", ".status.agent.lastSeen"}, {"Status", readyMessage}},
		"ClusterGroup":             {{"Clusters-Ready", ".status.display.readyClusters"}, {"Bundles-Ready", ".status.display.readyBundles"}, {"Status", readyMessage}},
		"ClusterRegistration":      {{"Cluster-Name", ".status.clusterName"}, {"Labels", ".spec.clusterLabels"}},
		"ClusterRegistrationToken": {{"Secret-Name", ".status.secretName"}},
		"Content":                  nil,
		"GitRepo":                  {{"Repo", ".spec.repo"}, {"Commit", ".status.commit"}, {"BundleDeployments-Ready", ".status.display.readyBundleDeployments"}, {"Status", readyMessage}},
		"GitRepoRestriction":       {{"Default-ServiceAccount", ".defaultServiceAccount"}, {"Allowed-ServiceAccounts", ".allowedServiceAccounts"}},
		"HelmOp":                   {{"Repo", ".spec.helm.repo"}, {"Chart", ".spec.helm.chart"}, {"Version", ".status.version"}, {"BundleDeployments-Ready", ".status.display.readyBundleDeployments"}, {"Status", readyMessage}},
		"ImageScan":                {{"Repository", ".spec.image"}, {"Latest", ".status.latestTag"}},
		"Policy":                   nil,
		"Schedule":                 {{"Schedule", ".spec.schedule"}, {"Duration", ".spec.duration"}, {"Active", ".status.active"}, {"NextStart", ".status.nextStartTime"}},
	} {
		t.Run(kind, func(t *testing.T) {
			a, ok := crds[kind]
			if !ok {
				t.Fatal("no definition")
			}
			checkDefinition(t, a, columns)
		})
	}
	if len(crds) != 14 {
		t.Errorf("%d kinds, want 14", len(crds))
	}
}

func checkDefinition(t *testing.T, a *admission, columns []column) {
	t.Helper()
	kind, version := a.crd.Spec.Names.Kind, a.crd.Spec.Versions[0]
	if got := a.crd.Annotations["helm.sh/resource-policy"]; got != "keep" {
		t.Errorf("helm.sh/resource-policy is %q, want keep", got)
	}
	if got, want := a.crd.Spec.Scope == "Cluster", kind == "Content"; got != want {
		t.Errorf("cluster scope %v, want %v", got, want)
	}
	if got, want := version.Subresources != nil, kind != "Policy"; got != want {
		t.Errorf("status subresource %v, want %v", got, want)
	}
	if got, want := len(a.crd.Spec.Names.Categories) == 1, kind != "Content"; got != want {
		t.Errorf("in the category fleet: %v, want %v", got, want)
	}
	var got []column
	for _, c := range version.AdditionalPrinterColumns {
		got = append(got, column{c.Name, c.JSONPath})
	}
	if diff := cmp.Diff(columns, got); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
}

// Each field of Rancher Fleet is there, with its type, and takes null where
// Fleet does.
func TestFieldsOfRancherFleet(t *testing.T) {
	crds := loadCRDs(t)
	fields, err := os.ReadFile("testdata/fleet-0.16-fields.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(fields)) {
		words := strings.Fields(line)
		if words[0] == "#" {
			continue
		}
		kind, path, wantType, nullable := words[0], words[1], words[2], len(words) == 4
		field := lookup(crds[kind].structural, path)
		switch {
		case field == nil:
			t.Errorf("%s%s is missing", kind, path)
		case typeOf(field) != wantType:
			t.Errorf("%s%s is of type %s, want %s", kind, path, typeOf(field), wantType)
		case nullable && !field.Nullable:
			t.Errorf("%s%s does not take null", kind, path)
		}
	}
}

func typeOf(s *structuralschema.Structural) string {
	if s.XIntOrString {
		return "int-or-string"
	}
	return s.Type
}

// lookup finds a path such as .spec.targets[].name or .spec.labels{}.
func lookup(s *structuralschema.Structural, path string) *structuralschema.Structural {
	path = strings.NewReplacer("[]", ".[]", "{}", ".{}").Replace(path)
	for _, step := range strings.Split(path, ".")[1:] {
		switch step {
		case "[]":
			s = s.Items
		case "{}":
			if s.AdditionalProperties == nil {
				return nil
			}
			s = s.AdditionalProperties.Structural
		default:
			property, ok := s.Properties[step]
			if !ok {
				return nil
			}
			s = &property
		}
		if s == nil {
			return nil
		}
	}
	return s
}

// The chart's templates are also applied without Helm.
func TestDefinitionsArePlainYAML(t *testing.T) {
	entries, err := os.ReadDir("../../../../charts/flotilla-crd/templates")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		data, err := os.ReadFile("../../../../charts/flotilla-crd/templates/" + entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(data), "{{") {
			t.Errorf("%s has template syntax", entry.Name())
		}
	}
}
