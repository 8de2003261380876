package content

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

const (
	// DataKey is the key of a payload in the ConfigMap or Secret that holds it,
	// PackKey that of chunks.
	DataKey, PackKey = "content", "chunks"
	// ParcelsAnnotation lists on a root the other parcels with chunks of it.
	ParcelsAnnotation = "flotilla.sh/parcels"
)

// FromConfigMap returns the parcel in a ConfigMap.
func FromConfigMap(obj *corev1.ConfigMap) Parcel {
	return Parcel{
		Data: obj.BinaryData[DataKey], Pack: obj.BinaryData[PackKey],
		Others: Listed(obj.Annotations[ParcelsAnnotation]),
	}
}

// FromSecret returns the payload in a Secret.
func FromSecret(obj *corev1.Secret) Parcel { return Parcel{Data: obj.Data[DataKey]} }

// Listed reads an annotation that lists names.
func Listed(value string) []string {
	if value == "" {
		return nil
	}
	return strings.Split(value, ",")
}
