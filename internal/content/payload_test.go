package content

import (
	"encoding/json"
	"testing"
)

// TestPayloadsAreEncodedAsEver keeps the digests of what is stored.
func TestPayloadsAreEncodedAsEver(t *testing.T) {
	raw := func(texts ...string) (out []json.RawMessage) {
		for _, text := range texts {
			out = append(out, json.RawMessage(text))
		}
		return out
	}
	for name, p := range map[string]payload{
		"nothing":          {Version: 1},
		"one object":       {Version: 1, Objects: raw(`{"a":[1,null,"b"]}`)},
		"several":          {Version: 2, Objects: raw(`{"a":1}`, `{}`, `{"b":"ü \" \\ \u2028"}`)},
		"escapes":          {Version: 1, Objects: raw(`{"run":"a && b > c < d"}`, `{"<":"&"}`)},
		"with a request":   {Version: 1, Objects: raw(`{"a":1}`), Request: raw(`{"b":">"}`)[0]},
		"files and chunks": {Version: 1, Files: []filePart{{Path: "a", Text: "<"}}, Chunks: []Ref{{Digest: "d"}}},
	} {
		t.Run(name, func(t *testing.T) {
			want, err := json.Marshal(p)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := p.encode(); err != nil || string(got) != string(want) {
				t.Errorf("got %s, %v\nwant %s", got, err, want)
			}
		})
	}
}
