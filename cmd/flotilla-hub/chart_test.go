package main

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/flotilla-sh/flotilla/internal/bundle"
	"github.com/flotilla-sh/flotilla/internal/hub/fair"
	"github.com/flotilla-sh/flotilla/internal/hub/memory"
	"github.com/flotilla-sh/flotilla/internal/lab/labtest"
	"github.com/flotilla-sh/flotilla/internal/source/git"
)

// parsed are the flags that the chart gives the hub.
func parsed(t *testing.T, d *appsv1.Deployment) *flags {
	t.Helper()
	cmd, f := commandLine()
	if err := cmd.ParseFlags(d.Spec.Template.Spec.Containers[0].Args); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestHubOfTheChartFitsIntoItsMemory(t *testing.T) {
	for name, tt := range map[string]struct {
		values string
		want   memory.Shares // in MiB
	}{
		"by itself":      {"", memory.Shares{Renderers: 2, Render: 512, Own: 1024}},
		"as asked for":   {"{renderers: 3, renderMemory: 256Mi}", memory.Shares{Renderers: 3, Render: 256, Own: 1280}},
		"with more":      {"resources: {limits: {memory: 8Gi}}", memory.Shares{Renderers: 16, Render: 392, Own: 1920}},
		"larger bundles": {"{gitMaxBundlesSize: 536870912, resources: {limits: {memory: 4Gi}}}", memory.Shares{Renderers: 6, Render: 384, Own: 1792}},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := labtest.Deployment("flotilla", tt.values)
			if err != nil {
				t.Fatal(err)
			}
			f := parsed(t, d)
			got, err := memory.Divide(memory.Wanted{
				Limit: d.Spec.Template.Spec.Containers[0].Resources.Limits.Memory().Value(), CPUs: 64, Bundles: f.hub.MaxBundlesSize,
				Renderers: f.renderers.Size, Render: f.renderers.MemoryLimit,
			})
			if err != nil {
				t.Fatal(err)
			}
			got.Render, got.Own = got.Render>>20, got.Own>>20
			if got != tt.want {
				t.Errorf("%+v, want %+v", got, tt.want)
			}
		})
	}
}

// The volume is as large as the hub ever needs: a volume that is too small is no
// error that the hub sees, but the end of its pod.
func TestCacheOfTheChartFitsIntoItsVolume(t *testing.T) {
	for values, want := range map[string]int64{ // in MiB
		"":                           6400,
		"gitCacheSize: 4Gi":          12544,
		"gitCacheSize: 500M":         5305, // 953 MiB of clones
		"gitCacheSize: 1":            4352,
		"gitCacheSize: 0":            0,
		"gitCacheSize: \"0\"":        0,
		"chartLimits: {size: 128Mi}": 7424,
		"{gitCacheSize: 4294967296, chartLimits: {size: 134217728}}": 13568,
	} {
		t.Run(values, func(t *testing.T) {
			d, err := labtest.Deployment("flotilla", values)
			if err != nil {
				t.Fatal(err)
			}
			f := parsed(t, d)
			var got int64
			for _, v := range d.Spec.Template.Spec.Volumes {
				if v.Name == "cache" && v.EmptyDir.SizeLimit != nil {
					got = v.EmptyDir.SizeLimit.Value()
				}
			}
			const packedAtOnce, charts, indexes = 2 * fair.Workers, 256 << 20, 160 << 20 // GitRepos and HelmOps
			needed := 2*f.hub.GitCacheSize + charts + packedAtOnce*(f.hub.Charts.Size+git.SmallFetch+indexes)
			if got>>20 != want || want > 0 && got != needed {
				t.Errorf("%d MiB, want %d, and the flags need %d", got>>20, want, needed>>20)
			}
		})
	}
}

func TestDefaultsOfChartAndHub(t *testing.T) {
	d, err := labtest.Deployment("flotilla", "")
	if err != nil {
		t.Fatal(err)
	}
	f := parsed(t, d)
	if f.hub.GitCacheSize != 1<<30 || f.hub.MaxBundlesSize != bundle.DefaultMaxBytes {
		t.Errorf("%+v", f.hub)
	}
}

// Numbers of a values file are floats to Helm.
func TestSizesOfTheChart(t *testing.T) {
	for values, want := range map[string]int64{
		"gitMaxBundlesSize: 4294967296": 4 << 30, `gitMaxBundlesSize: "4294967296"`: 4 << 30, "gitMaxBundlesSize: 4Gi": 4 << 30,
		"gitMaxBundlesSize: 1k": 1000, "gitMaxBundlesSize: 2T": 2e12, "gitMaxBundlesSize: 0": 0,
	} {
		d, err := labtest.Deployment("flotilla", values)
		if err != nil {
			t.Errorf("%s: %v", values, err)
		} else if got := parsed(t, d).hub.MaxBundlesSize; got != want {
			t.Errorf("%s: %d, want %d", values, got, want)
		}
	}
	d, err := labtest.Deployment("flotilla", "{renderers: 3, renderMemory: 268435456, chartLimits: {size: 134217728, files: 20000}}")
	if err != nil {
		t.Fatal(err)
	}
	f := parsed(t, d)
	if f.renderers.Size != 3 || f.renderers.MemoryLimit != 256<<20 || f.hub.Charts.Size != 128<<20 || f.hub.Charts.Files != 20000 {
		t.Errorf("%+v, %+v", f.renderers, f.hub.Charts)
	}
}

func TestValuesThatAreRefused(t *testing.T) {
	for values, says := range map[string]string{
		"gitCacheSize: many":           "gitCacheSize",
		"gitCacheSize: -1":             "gitCacheSize",
		"gitCacheSize: 1.5":            "gitCacheSize",
		"gitMaxBundlesSize: 1.5Gi":     "gitMaxBundlesSize",
		"chartLimits: {size: 128 MiB}": "chartLimits",
		"chartLimits: {files: 0}":      "chartLimits",
		"renderers: -1":                "renderers",
		"renderMemory: lots":           "renderMemory",
		"logLevel: loud":               "logLevel",
		"cacheSizeLimit: 2Gi":          "cacheSizeLimit", // it follows from gitCacheSize
		"flowControl: {shares: 30}":    "shares",
	} {
		if _, err := labtest.Deployment("flotilla", values); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", values, err)
		}
	}
}
