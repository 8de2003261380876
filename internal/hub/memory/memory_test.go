package memory_test

import (
	"strings"
	"testing"

	"github.com/flotilla-sh/flotilla/internal/hub/memory"
)

const (
	mib     = int64(1) << 20
	bundles = 256 * mib
)

func TestDivide(t *testing.T) {
	for name, tt := range map[string]struct {
		wanted memory.Wanted
		want   memory.Shares // in MiB
	}{
		"no limit":                     {memory.Wanted{CPUs: 8}, memory.Shares{Renderers: 8, Render: 1024}},
		"no limit, as asked for":       {memory.Wanted{CPUs: 8, Renderers: 3, Render: 200 * mib}, memory.Shares{Renderers: 3, Render: 200}},
		"the chart's":                  {memory.Wanted{Limit: 2048 * mib, CPUs: 32}, memory.Shares{Renderers: 2, Render: 512, Own: 1024}},
		"one CPU":                      {memory.Wanted{Limit: 2048 * mib, CPUs: 1}, memory.Shares{Renderers: 1, Render: 1024, Own: 1024}},
		"enough for all":               {memory.Wanted{Limit: 16384 * mib, CPUs: 4}, memory.Shares{Renderers: 4, Render: 1024, Own: 12288}},
		"barely enough":                {memory.Wanted{Limit: 1088 * mib, CPUs: 4}, memory.Shares{Renderers: 1, Render: 128, Own: 960}},
		"many":                         {memory.Wanted{Limit: 2048 * mib, CPUs: 4, Renderers: 4}, memory.Shares{Renderers: 4, Render: 224, Own: 1152}},
		"large ones":                   {memory.Wanted{Limit: 2048 * mib, CPUs: 4, Render: 700 * mib}, memory.Shares{Renderers: 1, Render: 700, Own: 1348}},
		"small ones, since they asked": {memory.Wanted{Limit: 2048 * mib, CPUs: 4, Render: 64 * mib}, memory.Shares{Renderers: 4, Render: 64, Own: 1792}},
	} {
		t.Run(name, func(t *testing.T) {
			tt.wanted.Bundles = bundles
			got, err := memory.Divide(tt.wanted)
			if err != nil {
				t.Fatal(err)
			}
			tt.want.Render *= mib
			tt.want.Own *= mib
			if got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestTooLittle(t *testing.T) {
	for name, tt := range map[string]struct {
		wanted memory.Wanted
		says   string
	}{
		"nothing left":       {memory.Wanted{Limit: 512 * mib, CPUs: 4}, "raise the limit to 1088 MiB"},
		"one MiB":            {memory.Wanted{Limit: 1087 * mib, CPUs: 4}, "the memory limit of 1087 MiB is too low"},
		"too many":           {memory.Wanted{Limit: 2048 * mib, CPUs: 4, Renderers: 16}, "16 renders at once 192 MiB each"},
		"too large":          {memory.Wanted{Limit: 2048 * mib, CPUs: 4, Render: 2048 * mib}, "raise the limit to 3008 MiB"},
		"too many too large": {memory.Wanted{Limit: 2048 * mib, CPUs: 4, Render: 600 * mib, Renderers: 2}, "raise the limit to 2224 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			tt.wanted.Bundles = bundles
			if got, err := memory.Divide(tt.wanted); err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %+v, %v, want %q", got, err, tt.says)
			}
		})
	}
}

// Whatever is asked for, what is given fits, and what is said to be needed does.
func TestWhatIsGivenFits(t *testing.T) {
	for limit := 100 * mib; limit < 6000*mib; limit += 37 * mib {
		for renderers := range 6 {
			for _, render := range []int64{0, 100 * mib, 900 * mib} {
				w := memory.Wanted{Limit: limit, CPUs: 8, Renderers: renderers, Render: render, Bundles: bundles}
				s, err := memory.Divide(w)
				if err != nil {
					continue
				}
				if int64(s.Renderers)*s.Render+s.Own > limit || s.Own < 384*mib+2*bundles || s.Renderers < 1 || s.Render < 100*mib {
					t.Fatalf("%+v gives %+v", w, s)
				}
			}
		}
	}
}
