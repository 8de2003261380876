package apply

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// written is an entry of an object's managed fields.
func written(manager, operation, subresource, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationType(operation), Subresource: subresource,
		APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
	}
}

func TestAdoptionTakesWhatAppliersHave(t *testing.T) {
	const (
		data  = `{"f:data":{"f:a":{}}}`
		other = `{"f:data":{"f:b":{}}}`
	)
	signed := func(annotation string) string { return `{"f:metadata":{"f:annotations":{"f:` + annotation + `":{}}}}` }
	for name, test := range map[string]struct {
		entries []metav1.ManagedFieldsEntry
		// stay are the managers that keep their entries.
		stay string
		none bool
	}{
		"kubectl apply":               {entries: []metav1.ManagedFieldsEntry{written("kubectl-client-side-apply", "Update", "", data)}},
		"kubectl create, then edit":   {entries: []metav1.ManagedFieldsEntry{written("kubectl-create", "Update", "", data), written("kubectl-edit", "Update", "", other)}},
		"kubectl apply --server-side": {entries: []metav1.ManagedFieldsEntry{written("kubectl", "Apply", "", data)}},
		"from before field managers":  {entries: []metav1.ManagedFieldsEntry{written("before-first-apply", "Update", "", data)}},
		"Helm":                        {entries: []metav1.ManagedFieldsEntry{written("helm", "Update", "", data)}},
		"Helm inside of Terraform":    {entries: []metav1.ManagedFieldsEntry{written("terraform-provider-helm_v2.17.0_x5", "Update", "", signed(helmReleaseAnnotation))}},
		"Rancher Fleet":               {entries: []metav1.ManagedFieldsEntry{written("fleetagent", "Update", "", data)}},
		"Rancher Fleet, renamed":      {entries: []metav1.ManagedFieldsEntry{written("rancher", "Apply", "", signed("objectset.rio.cattle.io/id"))}},
		"another bundle":              {entries: []metav1.ManagedFieldsEntry{written("flotilla-fleet-default/api", "Apply", "", data)}},
		"a controller stays":          {entries: []metav1.ManagedFieldsEntry{written("helm", "Update", "", data), written("kube-controller-manager", "Update", "", other)}, stay: "kube-controller-manager"},
		"an autoscaler stays":         {entries: []metav1.ManagedFieldsEntry{written("helm", "Update", "", data), written("kubectl", "Update", "scale", other)}, stay: "kubectl"},
		"a status stays":              {entries: []metav1.ManagedFieldsEntry{written("helm", "Update", "", data), written("kubelet", "Update", "status", other)}, stay: "kubelet"},
		"ours and another's":          {entries: []metav1.ManagedFieldsEntry{written("flotilla-ns/web", "Apply", "", data), written("helm", "Update", "", other)}},
		"there is nothing to take":    {entries: []metav1.ManagedFieldsEntry{written("kubelet", "Update", "", data)}, stay: "kubelet", none: true},
		"nobody is noted":             {none: true},
	} {
		t.Run(name, func(t *testing.T) {
			head := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7", ManagedFields: test.entries}}
			body, err := adoption(head, "flotilla-ns/web")
			if err != nil {
				t.Fatal(err)
			}
			if test.none {
				if body != nil {
					t.Errorf("patch: %s", body)
				}
				return
			}
			var steps []struct {
				Path  string
				Value json.RawMessage
			}
			if err := json.Unmarshal(body, &steps); err != nil || len(steps) != 2 || string(steps[0].Value) != `"7"` {
				t.Fatalf("steps: %s %v", body, err)
			}
			var entries []metav1.ManagedFieldsEntry
			if err := json.Unmarshal(steps[1].Value, &entries); err != nil {
				t.Fatal(err)
			}
			var others []string
			for _, e := range entries {
				if e.Manager != "flotilla-ns/web" {
					others = append(others, e.Manager)
				}
			}
			if strings.Join(others, " ") != test.stay || !applies(entries, "flotilla-ns/web") {
				t.Errorf("managers: %v", entries)
			}
			if i := slices.IndexFunc(entries, func(e metav1.ManagedFieldsEntry) bool { return e.Manager == "flotilla-ns/web" }); len(test.entries) == 2 && test.stay == "" &&
				string(entries[i].FieldsV1.GetRawBytes()) != `{"f:data":{"f:a":{},"f:b":{}}}` {
				t.Errorf("fields: %s", entries[i].FieldsV1.GetRawBytes())
			}
		})
	}
}
