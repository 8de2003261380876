package observe

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-sh/flotilla/internal/apply"
	"github.com/flotilla-sh/flotilla/internal/digest"
)

// Seen is what a watch says of an object.
type Seen struct {
	UID             string
	ResourceVersion string
	Generation      int64
	// Fields is the digest of the field set that is ours.
	Fields string
	// Writes changes with every write of others that is not to the status.
	Writes string
	// ScaledBy wrote spec.replicas through the scale subresource.
	ScaledBy string
}

// seenOf extracts what matters from an object's metadata.
func seenOf(meta *metav1.ObjectMeta, manager string) Seen {
	s := Seen{
		UID: string(meta.UID), ResourceVersion: meta.ResourceVersion, Generation: meta.Generation,
		Fields:   apply.OwnedFields(meta.ManagedFields, manager),
		ScaledBy: apply.ScaledBy(meta.ManagedFields),
	}
	if meta.Generation == 0 {
		s.Writes = writesOf(meta.ManagedFields, manager)
	}
	return s
}

// writesOf is a digest of who wrote what and when, status apart.
func writesOf(entries []metav1.ManagedFieldsEntry, manager string) string {
	var parts [][]byte
	for _, e := range entries {
		if e.Subresource == "" && e.Manager != manager && e.FieldsV1 != nil {
			parts = append(parts, []byte(e.Manager), []byte(timeOf(e)), e.FieldsV1.GetRawBytes())
		}
	}
	return digest.Of(parts...)[:16]
}

func timeOf(e metav1.ManagedFieldsEntry) string {
	if e.Time == nil {
		return ""
	}
	return e.Time.String()
}
