package templating

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// What is read without a parser is what the parser reads.
func FuzzPlainValues(f *testing.F) {
	for _, seed := range []string{
		"", "0", "1", "007", "10", "123456789012345", "1234567890123456", "1e3", "1.5", "0x10", "0o7", "1_000", "true", "True", "y", "N", "on", "OFF", "null", "Null",
		"a", "a b", "a  b", "a: b", "a:b", "a:", "a ", "a #b", "host:80", "https://x.y/z", "e", "E1", "inf", ".inf", "NaN", "a-", "a.", "a/b", "2001-01-01", "12:30", "yes please",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		value, ok := plainValueOf(text)
		if !ok {
			return
		}
		read := map[string]any{}
		if err := yaml.Unmarshal([]byte("k: "+text), &read); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if diff := cmp.Diff(map[string]any{"k": value}, read); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	})
}
