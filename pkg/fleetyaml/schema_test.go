package fleetyaml

import (
	"encoding/json"
	"slices"
	"testing"
)

func TestSchemaCoversTheRootKeysUsersKnow(t *testing.T) {
	var schema struct {
		AdditionalProperties *bool
		Properties           map[string]any
	}
	if err := json.Unmarshal(Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	if schema.AdditionalProperties == nil || *schema.AdditionalProperties {
		t.Error("the schema must be strict")
	}
	for _, key := range []string{
		"correctDrift", "createNamespace", "defaultNamespace", "deleteCRDResources", "deleteNamespace", "dependsOn", "diff",
		"downstreamResources", "forceSyncGeneration", "helm", "ignore", "imageScans", "keepResources", "kustomize", "labels",
		"name", "namespace", "namespaceAnnotations", "namespaceLabels", "overrideTargets", "paused", "rolloutStrategy",
		"serviceAccount", "targetCustomizationMode", "targetCustomizations", "targets", "yaml",
	} {
		if _, ok := schema.Properties[key]; !ok {
			t.Errorf("no key %q", key)
		}
	}
	for key := range schema.Properties {
		if slices.Contains(controllerFieldNames(), key) {
			t.Errorf("key %q is not for users", key)
		}
	}
}
