package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// apply creates or updates the Bundles on the hub.
func (f *applyFlags) apply(cmd *cobra.Command, bundles []*fleet.Bundle) error {
	hub, err := f.client()
	if err != nil {
		return err
	}
	for _, b := range bundles {
		done, err := f.applyBundle(cmd.Context(), hub, b)
		if err := interrupted(cmd.Context()); err != nil {
			return err
		}
		if err != nil {
			return fmt.Errorf("bundle %s/%s: %w", b.Namespace, b.Name, explainApply(err))
		}
		fmt.Fprintf(cmd.OutOrStdout(), "bundle %s/%s %s\n", b.Namespace, b.Name, done)
		if why := reachesNothing(cmd.Context(), hub, b); why != "" {
			fmt.Fprintf(cmd.ErrOrStderr(), "warning: bundle %s/%s: %s\n", b.Namespace, b.Name, why)
		}
	}
	return nil
}

// applyTimeout is how long one Bundle may take, which can have a megabyte.
const applyTimeout = time.Minute

// applyBundle tells what it did in one word.
func (f *applyFlags) applyBundle(ctx context.Context, hub client.Client, want *fleet.Bundle) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, applyTimeout)
	defer cancel()
	have := &fleet.Bundle{}
	err := hub.Get(ctx, client.ObjectKeyFromObject(want), have)
	if apierrors.IsNotFound(err) {
		return "created", hub.Create(ctx, want)
	}
	if err != nil {
		return "", err
	}
	if owner := have.Labels[fleet.RepoLabel]; owner != "" && owner != want.Labels[fleet.RepoLabel] {
		return "", fmt.Errorf("it belongs to the GitRepo %s, which would undo the change: choose another NAME, or commit the change", owner)
	}
	if have.DeletionTimestamp != nil {
		return "", errors.New("it is being deleted, and its objects with it: wait until its clusters have removed it, which flotilla status shows, and apply it again")
	}
	next := have.DeepCopy()
	delete(next.Labels, fleet.CommitLabel) // of what was applied before
	if next.Labels == nil {
		next.Labels = map[string]string{}
	}
	maps.Copy(next.Labels, want.Labels)
	want.Spec.DeepCopyInto(&next.Spec)
	if next.Spec.TargetCustomizationMode == "" {
		next.Spec.TargetCustomizationMode = have.Spec.TargetCustomizationMode // the API's default
	}
	if equality.Semantic.DeepEqual(have, next) {
		return "unchanged", nil
	}
	return "updated", hub.Update(ctx, next)
}

// explainApply says what to do about errors that one command can run into.
func explainApply(err error) error {
	if apierrors.IsRequestEntityTooLargeError(err) {
		return fmt.Errorf("it is too large to be stored as one object: use --compress, or a GitRepo, which has no such limit: %w", err)
	}
	return cmp.Or(hubTrouble(err), err)
}
