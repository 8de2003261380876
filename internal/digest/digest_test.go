package digest

import "testing"

func TestOfKeepsPartsApart(t *testing.T) {
	split := Of([]byte("ab"), []byte("c"))
	for name, other := range map[string]string{
		"bytes moved between parts": Of([]byte("a"), []byte("bc")),
		"one part":                  Of([]byte("abc")),
		"an empty part more":        Of([]byte("ab"), []byte("c"), nil),
		"plain bytes":               OfBytes([]byte("abc")),
	} {
		if other == split {
			t.Errorf("%s: same digest %s", name, other)
		}
	}
	if again := Of([]byte("ab"), []byte("c")); again != split {
		t.Errorf("not stable: %s and %s", split, again)
	}
}

func TestOfBytesIsPlainSHA256(t *testing.T) {
	const want = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	if got := OfBytes([]byte("abc")); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestJSONIsCanonical(t *testing.T) {
	type pair struct {
		B any `json:"b"`
		A any `json:"a"`
	}
	for name, tt := range map[string]struct {
		in   any
		want string
	}{
		"struct order does not matter": {pair{B: 1, A: "x"}, `{"a":"x","b":1}`},
		"map":                          {map[string]any{"b": 1, "a": "x"}, `{"a":"x","b":1}`},
		"nested":                       {map[string]any{"z": pair{B: true}}, `{"z":{"a":null,"b":true}}`},
		"no HTML escapes":              {"<a&b>", `"<a&b>"`},
		"big numbers stay exact":       {int64(9007199254740993), `9007199254740993`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := JSON(tt.in)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestOfJSONReportsWhatCannotBeEncoded(t *testing.T) {
	if _, err := OfJSON(func() {}); err == nil {
		t.Error("want an error for a function")
	}
}
