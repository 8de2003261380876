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

// text is like what people write: words and numbers, four times as long as
// when it is compressed.
func text(seed string, n int) string {
	words := strings.Fields(`the image of a container and its resources limits requests memory cpu ports name value
		env from secret key ref config map volume mounts path read only host probe http get initial delay seconds
		period timeout labels app component part version managed by annotations prometheus scrape port strategy
		rolling update max surge unavailable replicas selector match template spec metadata namespace service account`)
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(seed))                  // it never fails
	source := rand.New(rand.NewPCG(sum.Sum64(), 1)) //nolint:gosec // nothing secret
	var out strings.Builder
	for out.Len() < n {
		out.WriteString(words[source.IntN(len(words))])
		out.WriteByte(' ')
		if source.IntN(8) == 0 {
			fmt.Fprintf(&out, "%d ", source.IntN(1000))
		}
	}
	return out.String()[:n]
}

// largeBundle is the size of a large bundle.
const largeBundle = 5_000_000

// large are the files of a bundle of 5 MB: many ConfigMaps, filled by fill. A
// change is in one line of one of them.
func large(objects int, fill func(seed string, n int) string, change string) map[string]string {
	files := map[string]string{"fleet.yaml": "defaultNamespace: default\n"}
	for i := range objects {
		name := fmt.Sprintf("part-%04d", i)
		value := fill(name, largeBundle/objects)
		if i == objects/2 {
			value += change
		}
		files["parts/"+name+".yaml"] = stage.ConfigMap(name, value)
	}
	return files
}
