package capabilities

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-sh/flotilla/internal/render"
)

func TestParse(t *testing.T) {
	pod := render.API{GroupVersion: "v1", Kind: "Pod", Namespaced: true}
	role := render.API{GroupVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"}
	for name, tt := range map[string]struct {
		text string
		want []render.API
	}{
		"nothing":                 {"", nil},
		"core and group":          {"v1/Pod N\nrbac.authorization.k8s.io/v1/ClusterRole C\n", []render.API{pod, role}},
		"no last newline":         {"v1/Pod N", []render.API{pod}},
		"Windows line ends":       {"v1/Pod N\r\n", []render.API{pod}},
		"empty line":              {"\n\nv1/Pod N\n", []render.API{pod}},
		"no scope":                {"v1/Pod\n", nil},
		"no version":              {"Pod N\n", nil},
		"scope of a newer agent":  {"v1/Thing X\nv1/Pod N\n", []render.API{pod}},
		"fields of a newer agent": {"v1/Thing N list,watch\nv1/Pod N\n", []render.API{pod}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, render.ParseAPIs(tt.text)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
