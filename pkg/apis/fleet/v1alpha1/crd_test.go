package v1alpha1_test

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// costLimit is the budget that the API server gives to the rules of a request.
const costLimit = 10_000_000

// admission does to an object what the API server does before it stores it.
type admission struct {
	crd        apiextensionsv1.CustomResourceDefinition
	structural *structuralschema.Structural
	validator  validation.SchemaValidator
	rules      *cel.Validator
}

// loadCRDs reads the definitions that are shipped, keyed by kind.
func loadCRDs(t *testing.T) map[string]*admission {
	t.Helper()
	files, err := filepath.Glob("../../../../charts/flotilla-crd/templates/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no definitions found: run make generate (%v)", err)
	}
	kinds := map[string]*admission{}
	for _, file := range files {
		a := newAdmission(t, file)
		kinds[a.crd.Spec.Names.Kind] = a
	}
	return kinds
}

func newAdmission(t *testing.T, file string) *admission {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	a := &admission{}
	if err := yaml.UnmarshalStrict(data, &a.crd); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	var schema apiextensions.CustomResourceValidation
	err = apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(a.crd.Spec.Versions[0].Schema, &schema, nil)
	if err != nil {
		t.Fatal(err)
	}
	if a.structural, err = structuralschema.NewStructural(schema.OpenAPIV3Schema); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if a.validator, _, err = validation.NewSchemaValidator(schema.OpenAPIV3Schema); err != nil {
		t.Fatal(err)
	}
	a.rules = cel.NewValidator(a.structural, true, costLimit)
	return a
}

// admit prunes, defaults and validates obj in place. It returns the fields that
// were pruned and the errors that a user would see.
func (a *admission) admit(obj map[string]any) (pruned, problems []string) {
	pruned = pruning.PruneWithOptions(obj, a.structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	defaulting.Default(obj, a.structural)
	defaulting.PruneNonNullableNullsWithoutDefaults(obj, a.structural)
	errs := validation.ValidateCustomResource(nil, obj, a.validator)
	if len(errs) == 0 && a.rules != nil {
		errs, _ = a.rules.Validate(context.Background(), nil, a.structural, obj, nil, costLimit)
	}
	for _, err := range errs {
		problems = append(problems, err.Error())
	}
	return pruned, problems
}

// parse splits a YAML stream into objects.
func parse(t *testing.T, data []byte) []map[string]any {
	t.Helper()
	var objects []map[string]any
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		document, err := reader.Read()
		if err != nil {
			return objects
		}
		data, err := yaml.YAMLToJSON(document)
		if err != nil {
			t.Fatal(err)
		}
		var obj map[string]any
		if err := utiljson.Unmarshal(data, &obj); err != nil {
			t.Fatal(err)
		}
		if obj != nil {
			objects = append(objects, obj)
		}
	}
}

// acceptedManifests are all objects of testdata/accepted.
func acceptedManifests(t *testing.T) []map[string]any {
	t.Helper()
	files, err := filepath.Glob("testdata/accepted/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no manifests found (%v)", err)
	}
	var objects []map[string]any
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, parse(t, data)...)
	}
	return objects
}

func kindAndName(obj map[string]any) string {
	metadata := obj["metadata"].(map[string]any)
	return obj["kind"].(string) + "/" + metadata["name"].(string)
}

func containsAll(problems []string, fragments ...string) bool {
	all := strings.Join(problems, "\n")
	for _, fragment := range fragments {
		if !strings.Contains(all, fragment) {
			return false
		}
	}
	return true
}
