package apply

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// entry is what a program has set.
func entry(manager string, labels ...string) metav1.ManagedFieldsEntry {
	fields := `{"f:metadata":{"f:labels":{"f:` + strings.Join(labels, `":{},"f:`) + `":{}}}}`
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(fields)}
}

func TestDressedByAnother(t *testing.T) {
	owner := Owner{Label: "0123", Manager: "flotilla-a/web"}
	for name, test := range map[string]struct {
		live    map[string]string
		entries []metav1.ManagedFieldsEntry
		want    bool
	}{
		"as wanted":                    {live: map[string]string{"team": "web"}, entries: []metav1.ManagedFieldsEntry{entry("flotilla-ns-4567", "team")}},
		"gone":                         {entries: []metav1.ManagedFieldsEntry{entry("flotilla-ns-4567", "x")}},
		"a person's":                   {live: map[string]string{"team": "api"}, entries: []metav1.ManagedFieldsEntry{entry("kubectl", "team")}},
		"ours":                         {live: map[string]string{"team": "api"}, entries: []metav1.ManagedFieldsEntry{entry("flotilla-ns-0123", "team")}},
		"another bundle's":             {live: map[string]string{"team": "api"}, entries: []metav1.ManagedFieldsEntry{entry("flotilla-ns-4567", "team")}, want: true},
		"another bundle's other label": {live: map[string]string{"team": "api", "x": "y"}, entries: []metav1.ManagedFieldsEntry{entry("kubectl", "team"), entry("flotilla-ns-4567", "x")}},
	} {
		t.Run(name, func(t *testing.T) {
			head := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Labels: test.live, ManagedFields: test.entries}}
			if got := dressedByAnother(Dress{Labels: map[string]string{"team": "web"}}, head, owner); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestConflictOf(t *testing.T) {
	owner := Owner{Label: "0123", Manager: "flotilla-a/web"}
	for name, test := range map[string]struct {
		live    map[string]string
		entries []metav1.ManagedFieldsEntry
		force   bool
		says    string
	}{
		"not there":               {},
		"as wanted":               {live: map[string]string{"team": "web"}, entries: []metav1.ManagedFieldsEntry{entry("kubectl", "team")}},
		"ours from before":        {live: map[string]string{"team": "old"}, entries: []metav1.ManagedFieldsEntry{entry("flotilla-ns-0123", "team")}},
		"somebody else's":         {live: map[string]string{"team": "old"}, entries: []metav1.ManagedFieldsEntry{entry("kubectl", "team")}, says: `its label team was set to "old" by kubectl: set helm.takeOwnership`},
		"also somebody else's":    {live: map[string]string{"team": "old"}, entries: []metav1.ManagedFieldsEntry{entry("b", "team"), entry("flotilla-ns-0123", "team"), entry("a", "team", "x")}, says: "by a, b:"},
		"nobody's":                {live: map[string]string{"team": "old"}, entries: []metav1.ManagedFieldsEntry{entry("kubectl", "x")}, says: "by somebody else"},
		"taken over":              {live: map[string]string{"team": "old"}, entries: []metav1.ManagedFieldsEntry{entry("kubectl", "team")}, force: true},
		"the bundle's own object": {live: map[string]string{"team": "old"}, entries: []metav1.ManagedFieldsEntry{entry("flotilla-a/web", "team")}, force: true, says: "is in this bundle twice"},
	} {
		t.Run(name, func(t *testing.T) {
			head := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Labels: test.live, ManagedFields: test.entries}}
			err := conflictOf(Dress{Labels: map[string]string{"team": "web"}}, head, owner, test.force)
			if (err != nil) != (test.says != "") || err != nil && !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, want %q", err, test.says)
			}
		})
	}
}
