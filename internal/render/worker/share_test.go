package worker

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/flotilla-sh/flotilla/internal/render"
)

// TestObjectsAreSentUntilBothEndsKnowThem sends results that have objects in
// common, more of them than both ends remember.
func TestObjectsAreSentUntilBothEndsKnowThem(t *testing.T) {
	text := func(name string, size int) []byte { return []byte(`{"` + name + strings.Repeat("x", size) + `"}`) }
	common := [][]byte{text("small", 10), text("crd", shareLeast), text("large", shareRoom/3), text("larger", shareRoom/2), text("largest", shareRoom)}
	s, r := newSender(), newReceiver()
	sent := make([]int, 6)
	for round := range sent {
		want := append([][]byte{text(fmt.Sprint(round), 2*shareLeast)}, common[:2+round%4]...)
		result := &render.Result{}
		for _, object := range want {
			result.Objects = append(result.Objects, render.Object{JSON: object})
		}
		answer, parts := s.reply(result, nil)
		for _, part := range parts {
			sent[round] += len(part)
		}
		got, err := r.result(&answer, parts)
		if err != nil {
			t.Fatal(err)
		}
		for i, object := range got.Objects {
			if !bytes.Equal(object.JSON, want[i]) {
				t.Fatalf("round %d: object %d came as %.20s, want %.20s", round, i, object.JSON, want[i])
			}
		}
	}
	if own := 3 * shareLeast; sent[4] > own {
		t.Errorf("%d bytes were sent in round 4, want at most %d: what was there in rounds before is known", sent[4], own)
	}
	if _, err := r.unpack(1000, nil); err == nil {
		t.Error("an object that was never sent is taken for known")
	}
}
