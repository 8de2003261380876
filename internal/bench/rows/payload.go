package rows

import (
	"context"
	"encoding/base64"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"

	"github.com/flotilla-sh/flotilla/internal/bench/stage"
)

// payloadSize is that of the one object of the row's bundle.
const payloadSize = 100_000

var payload = Row{
	Name: "payload", N: 1000,
	Title: "one bundle of 100 kB that compress badly on N clusters, created and then changed",
	measure: func(ctx context.Context, r *Run) error {
		return r.rollouts(ctx, rollout{clusters: r.N, bundles: many("bundle", 1), goals: goals{
			"create: etcd log per deployment": {goal: "≤ 4", peer: "115–200"},
			"update: etcd log per deployment": {goal: "≤ 4", peer: "115–200"},
		}, payload: func(name, value string) map[string]string {
			return map[string]string{"configmap.yaml": stage.ConfigMap(name, noise(value, payloadSize))}
		}})
	},
}

// noise is text of a length that compresses badly, always the same for a seed.
func noise(seed string, n int) string {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(seed))                  // it never fails
	source := rand.New(rand.NewPCG(sum.Sum64(), 0)) //nolint:gosec // nothing secret
	raw := make([]byte, n*3/4+3)
	for i := range raw {
		raw[i] = byte(source.Uint32())
	}
	return base64.StdEncoding.EncodeToString(raw)[:n]
}

// large are the files of a bundle of 5 MB: many ConfigMaps. A change is in one
// line of one of them.
func large(objects int, change string) map[string]string {
	files := map[string]string{"fleet.yaml": "defaultNamespace: default\n"}
	for i := range objects {
		name := fmt.Sprintf("part-%04d", i)
		value := noise(name, largeBundle/objects)
		if i == objects/2 {
			value += change
		}
		files["parts/"+name+".yaml"] = strings.ReplaceAll(stage.ConfigMap(name, value), "\"", "")
	}
	return files
}

// largeBundle is the size of a large bundle.
const largeBundle = 5_000_000
