// Package state keeps on the agent's own cluster all that it needs to go on
// without the hub: what each deployment should be, what it has on the cluster,
// and the content itself. It is written before the agent acts, so that whatever
// ends the program is finished by its next start.
package state

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/flotilla-sh/flotilla/internal/apply"
	"github.com/flotilla-sh/flotilla/internal/content"
	"github.com/flotilla-sh/flotilla/internal/names"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// Record is what the agent keeps of one deployment.
type Record struct {
	// Name is the deployment's name on the hub, UID and Generation the state
	// of it that was accepted last.
	Name       string `json:"name"`
	UID        string `json:"uid"`
	Generation int64  `json:"generation"`
	// Bundle and BundleNamespace name its bundle.
	Bundle          string `json:"bundle"`
	BundleNamespace string `json:"bundleNamespace"`
	// Hub is the identity of the hub with which its objects were marked.
	Hub string `json:"hub,omitempty"`
	// DependsOn are its dependencies, and Labels those by which others name it.
	DependsOn []fleet.BundleRef `json:"dependsOn,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
	// DeploymentID is what was wanted last: once it differs from Applied, an
	// apply has begun and is not finished.
	DeploymentID string `json:"deploymentID"`
	// Options and CorrectDrift go with DeploymentID.
	Options      fleet.BundleDeploymentOptions `json:"options,omitzero"`
	CorrectDrift *fleet.CorrectDrift           `json:"correctDrift,omitempty"`
	// Refs are the payloads of its content; the first one is the root.
	Refs []content.Ref `json:"refs,omitempty"`
	// Registry names the access to the registry that they came from; empty for
	// the hub.
	Registry string `json:"registry,omitempty"`
	// Rendered says what the content was rendered from, where this cluster has
	// rendered it.
	Rendered *Rendered `json:"rendered,omitempty"`
	// Applied is the deployment ID whose objects are all on the cluster.
	Applied string `json:"applied,omitempty"`
	// Installed is true once a release has succeeded.
	Installed bool `json:"installed,omitempty"`
	// Release is the release that is under way, or that was given up.
	Release *Release `json:"release,omitempty"`
	// Good is what to go back to where the release under way fails; nil where
	// that was not asked for.
	Good *Good `json:"good,omitempty"`
	// Hooks are objects that hooks have made, or may have made.
	Hooks []apply.Ref `json:"hooks,omitempty"`
	// DeleteHooks is true where hooks are to run when it is removed.
	DeleteHooks bool `json:"deleteHooks,omitempty"`
	// Inventory is what it has, or may have, on the cluster.
	Inventory apply.Inventory `json:"inventory,omitempty"`
	// Dressed are the namespaces on which it has set, or may have set, labels
	// and annotations.
	Dressed []apply.Dressed `json:"dressed,omitempty"`
	// Held left the bundle and were kept.
	Held []apply.Ref `json:"held,omitempty"`
	// Asked are the objects that it wants and that another bundle has.
	Asked []apply.Ref `json:"asked,omitempty"`
	// Removing is true once a removal mark was confirmed.
	Removing bool `json:"removing,omitempty"`
}

// Rendered is a render that was made on this cluster.
type Rendered struct {
	// Source is the digest of the hub's content, Input that of everything that
	// the render depends on.
	Source string `json:"source"`
	Input  string `json:"input"`
	// Secret is true where the data of a Secret went into it.
	Secret bool `json:"secret,omitempty"`
}

// Runs tells whether what was applied last is all that is on the cluster: no
// release has begun since, or it was undone.
func (r *Record) Runs() bool {
	undone := r.Release != nil && r.Release.Failed != "" && r.Release.Phase == Over
	return r.Applied != "" && (r.Applied == r.DeploymentID || undone)
}

// Secret tells whether the values of its objects may be secret.
func (r *Record) Secret() bool { return r.Rendered != nil && r.Rendered.Secret }

// payloads are all that the record needs, the root of its content first.
func (r *Record) payloads() []content.Ref {
	if r.Good == nil {
		return slices.Clone(r.Refs)
	}
	return slices.Concat(r.Refs, r.Good.Refs)
}

// Owner returns the identity that its objects carry.
func (r *Record) Owner() apply.Owner {
	return apply.Owner{
		Bundle:  r.BundleNamespace + "/" + r.Bundle,
		Hub:     r.Hub,
		Label:   names.DeploymentLabel(r.BundleNamespace, r.Bundle),
		Manager: names.FieldManager(r.BundleNamespace, r.Bundle),
	}
}

// compressors are used again: one takes far more memory than a record.
var compressors = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

// encode returns the record as compressed JSON.
func (r *Record) encode() ([]byte, error) {
	var buf bytes.Buffer
	w := compressors.Get().(*gzip.Writer)
	defer compressors.Put(w)
	w.Reset(&buf)
	if err := json.NewEncoder(w).Encode(r); err != nil {
		return nil, fmt.Errorf("encode the state of %s: %w", r.Name, err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("encode the state of %s: %w", r.Name, err)
	}
	return buf.Bytes(), nil
}

// maxRecord bounds what a stored record may decompress to.
const maxRecord = 64 << 20

func decodeRecord(data []byte) (*Record, error) {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("the stored state is damaged: %w", err)
	}
	record := &Record{}
	if err := json.NewDecoder(io.LimitReader(r, maxRecord)).Decode(record); err != nil {
		return nil, fmt.Errorf("the stored state is damaged: %w", err)
	}
	return record, nil
}
