package start

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestSize(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1": 1, "4294967296": 4 << 30, "512Mi": 512 << 20, "4Gi": 4 << 30, "1k": 1000,
		// As Helm writes a number of a values file.
		"4.294967296e+09": 4 << 30,
	} {
		got := int64(7)
		if err := Size(&got, 0).Set(text); err != nil || got != want {
			t.Errorf("%q: %d, %v, want %d", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"": "512Mi", "128 Mi": "512Mi", "many": "512Mi", "99999999999Gi": "512Mi", "0": "at least 1", "-5": "at least 1", "-1Mi": "at least 1",
	} {
		got := int64(7)
		if err := Size(&got, 1).Set(text); err == nil || !strings.Contains(err.Error(), want) || got != 7 {
			t.Errorf("%q: %d, %v, want %s", text, got, err, want)
		}
	}
}

func TestCount(t *testing.T) {
	n := 0
	if err := Count(&n).Set("12"); err != nil || n != 12 {
		t.Errorf("%d, %v", n, err)
	}
	for _, text := range []string{"", "0", "-1", "1.5", "many"} {
		if err := Count(&n).Set(text); err == nil || n != 12 {
			t.Errorf("%q: %d, %v", text, n, err)
		}
	}
}

func TestDefaultsAreShown(t *testing.T) {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	some, none, two, nobody := int64(256<<20), int64(0), 2, 0
	set.Var(Size(&some, 0), "some", "so many `bytes`")
	set.Var(Size(&none, 0), "none", "no `bytes`")
	set.Var(Count(&two), "two", "how many")
	set.Var(Count(&nobody), "nobody", "nobody")
	usage := set.FlagUsages()
	if !strings.Contains(usage, "--some bytes   so many bytes (default 256Mi)") || !strings.Contains(usage, "how many (default 2)") || strings.Count(usage, "default") != 2 {
		t.Error(usage)
	}
}
