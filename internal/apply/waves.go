package apply

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	ssautil "github.com/fluxcd/pkg/ssa/utils"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

const (
	// Definitions, as a wave, are custom resource definitions and namespaces
	// alone.
	Definitions = math.MinInt
	// Copies, as a wave, is what was copied from the hub, without definitions:
	// hooks may need it.
	Copies = math.MinInt + 1
	// Everything, as a wave, is after all others. What left the bundle is
	// pruned with it.
	Everything = math.MaxInt

	// maxWave bounds the numbers of waves.
	maxWave = math.MaxInt32
)

// waveOf returns the wave that an object asks for.
func waveOf(obj *unstructured.Unstructured) (int, error) {
	text, set := obj.GetAnnotations()[fleet.WaveAnnotation]
	if !set {
		return 0, nil
	}
	wave, err := strconv.Atoi(text)
	if err != nil || wave > maxWave || wave < -maxWave {
		return 0, stall(ReasonRejected, fmt.Errorf("its annotation %s is %q: it must be a whole number", fleet.WaveAnnotation, text))
	}
	return wave, nil
}

// stageOf is when an item is applied: definitions and copies come before all
// waves.
func stageOf(it item) int {
	switch {
	case ssautil.IsClusterDefinition(it.obj):
		return Definitions
	case it.obj.GetAnnotations()[fleet.CopiedAnnotation] != "":
		return Copies
	}
	return it.wave
}

// HasCopies tells whether something of it was copied from the hub.
func (p *Plan) HasCopies() bool {
	return slices.ContainsFunc(p.items, func(it item) bool { return stageOf(it) == Copies })
}

// before returns the number of items that are applied before a stage.
func (p *Plan) before(stage int) int {
	i := slices.IndexFunc(p.items, func(it item) bool { return stageOf(it) >= stage })
	if i < 0 {
		return len(p.items)
	}
	return i
}

// Waves returns the waves of the plan in their order, the last as Everything.
func (p *Plan) Waves() []int {
	var waves []int
	for _, it := range p.items {
		if stage := stageOf(it); stage > Copies {
			waves = append(waves, stage)
		}
	}
	waves = slices.Compact(waves)
	if len(waves) == 0 {
		return []int{Everything}
	}
	waves[len(waves)-1] = Everything
	return waves
}

// Through returns the objects of all waves up to one.
func (p *Plan) Through(wave int) []Ref {
	var refs []Ref
	for _, it := range p.items {
		if stageOf(it) <= wave {
			refs = append(refs, it.ref)
		}
	}
	return refs
}
