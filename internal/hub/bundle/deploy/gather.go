package deploy

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/hub/bundle/sources"
	"github.com/flotilla-sh/flotilla/internal/names"
	"github.com/flotilla-sh/flotilla/internal/pipeline"
	"github.com/flotilla-sh/flotilla/internal/target"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// soon is when to look again for an object that another write precedes.
const soon = time.Second

// facts is everything that a decision about one bundle depends on.
type facts struct {
	input        pipeline.Input
	existing     []fleet.BundleDeployment
	known        map[string]bool
	sourceDigest string
	// at is where the content goes.
	at place
}

func (c *Controller) gather(ctx context.Context, bundle *fleet.Bundle) (*facts, error) {
	f := &facts{}
	spec, err := c.withValues(ctx, bundle)
	if err != nil {
		return nil, err
	}
	src, err := c.Sources.Of(ctx, bundle)
	if err != nil {
		return nil, err
	}
	f.sourceDigest = src.Digest
	if f.existing, err = c.existing(ctx, bundle); err != nil {
		return nil, err
	}
	if f.at, err = c.placeOf(ctx, bundle); err != nil {
		return nil, err
	}
	earlier, err := remembered(ctx, f.existing, f.at)
	if err != nil {
		return nil, err
	}
	if f.known, err = c.knownClusters(ctx); err != nil {
		return nil, err
	}
	copies, err := c.copies(ctx, bundle, spec)
	if err != nil {
		return nil, err
	}
	clusters, err := c.candidates(ctx, bundle)
	if err != nil {
		return nil, err
	}
	f.input = pipeline.Input{
		Bundle: target.Bundle{
			Namespace: bundle.Namespace, Name: bundle.Name, Labels: bundle.Labels, Spec: *spec,
		},
		Files:        src.Files,
		SourceDigest: src.Digest,
		Commit:       bundle.Labels[fleet.CommitLabel],
		Clusters:     clusters,
		Copies:       copies,
		Remembered:   earlier,
		Keep:         f.at.Put,
	}
	return f, nil
}

// withValues returns the bundle's spec with the Helm values of its Secret.
func (c *Controller) withValues(ctx context.Context, bundle *fleet.Bundle) (*fleet.BundleSpec, error) {
	spec := bundle.Spec.DeepCopy()
	if spec.ValuesHash == "" {
		return spec, nil
	}
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: bundle.Namespace, Name: names.ValuesSecret(bundle.Name, spec.ValuesHash)}
	err := c.Live.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		return nil, sources.Missing(bundle, "WaitingForValues", fmt.Errorf("the Secret %s with the Helm values is not there (yet)", key))
	}
	if err != nil {
		return nil, fmt.Errorf("read the Helm values: %w", err)
	}
	if err := putValues(&spec.Helm, secret.Data[names.ValuesKey(-1)]); err != nil {
		return nil, err
	}
	for i := range spec.Targets {
		if err := putValues(&spec.Targets[i].Helm, secret.Data[names.ValuesKey(i)]); err != nil {
			return nil, err
		}
	}
	return spec, nil
}

func putValues(helm **fleet.HelmOptions, raw []byte) error {
	if len(raw) == 0 {
		return nil
	}
	if *helm == nil {
		*helm = &fleet.HelmOptions{}
	}
	(*helm).Values = &fleet.GenericMap{}
	if err := json.Unmarshal(raw, (*helm).Values); err != nil {
		return fault.Stall("InvalidValues", fmt.Errorf("stored Helm values are damaged: %w", err))
	}
	return nil
}

// existing returns the deployments of a bundle, as the cache has them: they are
// not to be changed.
func (c *Controller) existing(ctx context.Context, bundle *fleet.Bundle) ([]fleet.BundleDeployment, error) {
	list := &fleet.BundleDeploymentList{}
	err := c.Client.List(ctx, list, client.UnsafeDisableDeepCopy,
		client.MatchingFields{bundleIndex: client.ObjectKeyFromObject(bundle).String()})
	if err != nil {
		return nil, fmt.Errorf("list deployments: %w", err)
	}
	return list.Items, nil
}

// existingLive returns them past the cache: one that was just created must not
// be missed when the bundle goes.
func (c *Controller) existingLive(ctx context.Context, bundle *fleet.Bundle) ([]fleet.BundleDeployment, error) {
	list := &fleet.BundleDeploymentList{}
	err := c.Live.List(ctx, list, client.MatchingLabels{
		fleet.BundleLabel: bundle.Name, fleet.BundleNamespaceLabel: bundle.Namespace,
	})
	if err != nil {
		return nil, fmt.Errorf("list deployments: %w", err)
	}
	return list.Items, nil
}

// remembered reads the last renders off the deployments. One whose content is
// not stored any more is rendered anew.
func remembered(ctx context.Context, existing []fleet.BundleDeployment, at place) (map[string]pipeline.Remembered, error) {
	out := make(map[string]pipeline.Remembered, len(existing))
	for i := range existing {
		spec := &existing[i].Spec
		if spec.Content == nil || spec.RenderInput == "" {
			continue
		}
		stored, err := at.Has(ctx, existing[i].Namespace, spec.Content)
		if err != nil {
			return nil, err
		}
		if stored {
			out[existing[i].Namespace] = pipeline.Remembered{Input: spec.RenderInput, Asked: spec.RenderAsked, Content: *spec.Content}
		}
	}
	return out, nil
}
