package write

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/flotilla-sh/flotilla/internal/content/kube"
	"github.com/flotilla-sh/flotilla/internal/digest"
	"github.com/flotilla-sh/flotilla/internal/names"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// takeValues moves the inline Helm values of a bundle and of its targets into
// an immutable Secret that is named by their digest; nil where there are none.
// spec.valuesHash names it, so bundle and Secret can never disagree.
func takeValues(b *fleet.Bundle) (*corev1.Secret, error) {
	data := map[string][]byte{}
	if err := takeFrom(b.Spec.Helm, names.ValuesKey(-1), data); err != nil {
		return nil, err
	}
	for i := range b.Spec.Targets {
		if err := takeFrom(b.Spec.Targets[i].Helm, names.ValuesKey(i), data); err != nil {
			return nil, err
		}
	}
	if len(data) == 0 {
		b.Spec.ValuesHash = ""
		return nil, nil
	}
	hash, err := digest.OfJSON(data)
	if err != nil {
		return nil, err
	}
	b.Spec.ValuesHash = hash
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: b.Namespace,
			Name:      names.ValuesSecret(b.Name, hash),
			Labels:    map[string]string{fleet.BundleLabel: b.Name, fleet.ManagedLabel: "true", kube.ManagedLabel: "true"},
		},
		Type:      fleet.BundleValuesType,
		Immutable: ptr.To(true),
		Data:      data,
	}, nil
}

func takeFrom(helm *fleet.HelmOptions, key string, data map[string][]byte) error {
	if helm == nil || helm.Values == nil || len(helm.Values.Data) == 0 {
		return nil
	}
	raw, err := digest.JSON(helm.Values)
	if err != nil {
		return fmt.Errorf("helm values: %w", err)
	}
	data[key] = raw
	helm.Values = nil
	return nil
}
