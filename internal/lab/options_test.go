package lab_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-sh/flotilla/internal/lab"
)

func TestParseSpoke(t *testing.T) {
	tests := map[string]struct {
		text string
		want lab.Spoke
		err  string
	}{
		"a name":                {text: "dev", want: lab.Spoke{Name: "dev", Labels: map[string]string{"env": "dev"}}},
		"labels":                {text: "a=env=dev,region=eu", want: lab.Spoke{Name: "a", Labels: map[string]string{"env": "dev", "region": "eu"}}},
		"labels without env":    {text: "a=tier=gold", want: lab.Spoke{Name: "a", Labels: map[string]string{"env": "a", "tier": "gold"}}},
		"a label without value": {text: "a=env", err: "NAME=label=value"},
		"a value that is none":  {text: "a=env=-x-", err: "NAME=label=value"},
		"upper case":            {text: "Dev", err: "lower-case"},
		"nothing":               {text: "", err: "lower-case"},
		"the hub's name":        {text: "hub", err: "taken by a part of the lab"},
		"a file's name":         {text: "dev-agent", err: "taken by a part of the lab"},
	}
	for situation, test := range tests {
		t.Run(situation, func(t *testing.T) {
			got, err := lab.ParseSpoke(test.text)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Fatalf("got error %v, want %q", err, test.err)
				}
				return
			}
			if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
				t.Errorf("%v %s", err, diff)
			}
		})
	}
}

func TestDefaultSpokes(t *testing.T) {
	var names []string
	for _, spoke := range lab.DefaultSpokes(5) {
		names = append(names, spoke.Name+" "+spoke.Labels["env"]+" "+spoke.Labels["region"])
	}
	want := []string{"dev dev eu-west", "staging staging us-east", "prod prod ap-south", "spoke-4 spoke-4 eu-west", "spoke-5 spoke-5 us-east"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
}

func TestStartRefuses(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	some := lab.Programs{ControlPlane: self, Flotilla: self}
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "thesis.tex"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		options lab.Options
		err     string
	}{
		"programs that are not built": {lab.Options{Programs: lab.ProgramsIn("/nowhere"), Products: true}, "make build"},
		"two spokes of one name":      {lab.Options{Programs: some, Spokes: []lab.Spoke{{Name: "a"}, {Name: "a"}}}, `two spokes are called "a"`},
		"a directory with other data": {lab.Options{Programs: some, Dir: foreign}, "not empty and holds no lab"},
	}
	for situation, test := range tests {
		t.Run(situation, func(t *testing.T) {
			if test.options.Dir == "" {
				test.options.Dir = filepath.Join(t.TempDir(), "lab")
			}
			_, err := lab.Start(t.Context(), test.options)
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("got %v, want %q", err, test.err)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(foreign, "thesis.tex")); err != nil {
		t.Error(err)
	}
}
