package fleetyaml

import "testing"

func TestAliasesCannotBlowUp(t *testing.T) {
	for name, file := range map[string]string{
		"wide circle": "helm: {values: &a {a: [*a, *a, *a], bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb: *a}}\n",
		"merges":      "helm: {values: &a {<<: [*a, *a, *a], b: *a}}\n",
		"laughs":      "helm:\n  values:\n    a: &a [1,1,1,1,1,1,1,1,1]\n    b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n    c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n    d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n    e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\n    f: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\n    g: [*f,*f,*f,*f,*f,*f,*f,*f,*f]\n",
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := Parse([]byte(file), "fleet.yaml"); err == nil {
				t.Error("want an error")
			}
		})
	}
}
