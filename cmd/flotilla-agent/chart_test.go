package main

import (
	"strings"
	"testing"

	"github.com/flotilla-sh/flotilla/internal/lab/labtest"
)

func TestImageOfTheChart(t *testing.T) {
	for values, want := range map[string]string{
		"": "ghcr.io/flotilla-sh/flotilla-agent:", "image: {tag: v1.2.3}": "ghcr.io/flotilla-sh/flotilla-agent:v1.2.3",
		"image: {tag: 20261122}": "ghcr.io/flotilla-sh/flotilla-agent:20261122",
	} {
		d, err := labtest.Deployment("flotilla-agent", values)
		if err != nil {
			t.Fatal(err)
		}
		if got := d.Spec.Template.Spec.Containers[0].Image; !strings.HasPrefix(got, want) || strings.HasSuffix(got, ":") {
			t.Errorf("%q: %s, want %s", values, got, want)
		}
	}
}

func TestRenderMemoryOfTheChart(t *testing.T) {
	for values, want := range map[string]string{
		"": "384Mi", "renderMemory: 268435456": "256Mi", `renderMemory: "268435456"`: "256Mi", "renderMemory: 256Mi": "256Mi",
	} {
		d, err := labtest.Deployment("flotilla-agent", values)
		if err != nil {
			t.Fatal(err)
		}
		container := d.Spec.Template.Spec.Containers[0]
		cmd := command()
		if err := cmd.ParseFlags(container.Args); err != nil {
			t.Fatalf("%s: %v", values, err)
		}
		if got := cmd.Flag("render-memory").Value.String(); got != want {
			t.Errorf("%s: %s, want %s", values, got, want)
		}
	}
	for _, values := range []string{"renderMemory: lots", "renderMemory: -1", "heartbeat: often", "heartbeat: 60", "heartBeat: 60s"} {
		if _, err := labtest.Deployment("flotilla-agent", values); err == nil {
			t.Errorf("%s is taken", values)
		}
	}
}
