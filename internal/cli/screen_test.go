package cli

import "testing"

func TestWhatDoesNotFitOnTheScreenIsCounted(t *testing.T) {
	const text = "one\ntwo\nthree\nfour\n"
	for name, tt := range map[string]struct {
		text          string
		width, height int
		want          string
	}{
		"all of it":          {text, 80, 4, text},
		"a line too many":    {text, 80, 3, "one\ntwo\n… and 2 more lines (without --watch all are printed)\n"},
		"lines that wrap":    {"12345678\ntwo\nthree\n", 4, 3, "12345678\n… and 2 more lines (without --watch all are printed)\n"},
		"colour has no room": {"\x1b[32m1234\x1b[0m\ntwo\n", 4, 2, "\x1b[32m1234\x1b[0m\ntwo\n"},
		"an unknown size":    {text, 0, 0, text},
		"next to no room":    {text, 80, 1, "… and 4 more lines (without --watch all are printed)\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fit(tt.text, tt.width, tt.height); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
