package hook_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-sh/flotilla/internal/hook"
)

func TestOf(t *testing.T) {
	before := []hook.Policy{hook.BeforeCreation}
	for name, tt := range map[string]struct {
		annotations map[string]string
		want        hook.Hook
		is          bool
	}{
		"no hook":          {nil, hook.Hook{}, false},
		"two events":       {map[string]string{hook.Annotation: " Pre-Upgrade,pre-install,"}, hook.Hook{Events: []hook.Event{hook.PreInstall, hook.PreUpgrade}, Policies: before}, true},
		"weight, policies": {map[string]string{hook.Annotation: "post-delete", hook.WeightAnnotation: "-5", hook.DeleteAnnotation: "hook-succeeded, hook-failed"}, hook.Hook{Events: []hook.Event{hook.PostDelete}, Weight: -5, Policies: []hook.Policy{hook.Failed, hook.Succeeded}}, true},
		"a test":           {map[string]string{hook.Annotation: "test-success"}, hook.Hook{Policies: before}, true},
		"a test and more":  {map[string]string{hook.Annotation: "test,post-install"}, hook.Hook{Events: []hook.Event{hook.PostInstall}, Policies: before}, true},
		"only rollback":    {map[string]string{hook.Annotation: "pre-rollback,post-rollback"}, hook.Hook{Policies: before}, true},
		"unknown":          {map[string]string{hook.Annotation: "pre-install,before-lunch"}, hook.Hook{Unknown: []string{"before-lunch"}, Policies: before}, true},
		"crd-install":      {map[string]string{hook.Annotation: "crd-install"}, hook.Hook{}, false},
		"a bad weight":     {map[string]string{hook.Annotation: "pre-install", hook.WeightAnnotation: "heavy"}, hook.Hook{Events: []hook.Event{hook.PreInstall}, Policies: before}, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, is := hook.Of(func(key string) string { return tt.annotations[key] })
			if diff := cmp.Diff(tt.want, got); diff != "" || is != tt.is {
				t.Errorf("hook: %v (-want +got):\n%s", is, diff)
			}
		})
	}
}
