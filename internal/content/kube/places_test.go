package kube

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/flotilla-sh/flotilla/internal/content"
)

// blobs have the digests from..to; each is n bytes large.
func blobs(from, to, n int) []content.Blob {
	var out []content.Blob
	for i := from; i < to; i++ {
		out = append(out, content.Blob{Ref: content.Ref{Digest: fmt.Sprintf("%016d-rest", i)}, Data: make([]byte, n)})
	}
	return out
}

// parcelsOf are the names that a claim needs, and the number of its chunks.
func parcelsOf(c claim) (others []string, extra, own int) {
	for _, o := range c.others {
		others = append(others, o.name)
	}
	for _, e := range c.extra {
		extra += len(e.blobs)
	}
	return others, extra, len(c.own.blobs)
}

func TestClaims(t *testing.T) {
	stored := func(p *places, root string, chunks []content.Blob) { p.settle(p.claim(root, chunks), nil) }
	for name, test := range map[string]struct {
		before     func(*places)
		chunks     []content.Blob
		others     []string
		extra, own int
	}{
		"all new":             {func(*places) {}, blobs(0, 5, 10), nil, 0, 5},
		"all new, and large":  {func(*places) {}, blobs(0, 5, 300<<10), nil, 4, 1},
		"nothing new":         {func(p *places) { stored(p, "a", blobs(0, 5, 10)) }, blobs(0, 5, 10), []string{"a"}, 0, 0},
		"one new":             {func(p *places) { stored(p, "a", blobs(0, 5, 10)) }, blobs(0, 6, 10), []string{"a"}, 0, 1},
		"in order":            {func(p *places) { stored(p, "b", blobs(0, 5, 10)); stored(p, "a", blobs(0, 9, 10)) }, blobs(3, 10, 10), []string{"b", "a"}, 0, 1},
		"little of a big one": {func(p *places) { stored(p, "a", blobs(0, 100, 10)) }, blobs(90, 110, 10), nil, 0, 20},
		"lost":                {func(p *places) { stored(p, "a", blobs(0, 5, 10)); p.lost("a") }, blobs(0, 5, 10), nil, 0, 5},
		"read at the start":   {func(p *places) { p.add("a", content.Shorts(blobs(0, 5, 10))) }, blobs(0, 6, 10), []string{"a"}, 0, 1},
		"not stored":          {func(p *places) { p.settle(p.claim("a", blobs(0, 5, 10)), errors.New("no")) }, blobs(0, 5, 10), nil, 0, 5},
		"about to be stored":  {func(p *places) { p.claim("a", blobs(0, 5, 10)) }, blobs(0, 5, 10), []string{"a"}, 0, 0},
		"too many parcels": {func(p *places) {
			for i := range content.MaxOthers + 1 {
				stored(p, fmt.Sprint(i), blobs(i, i+1, 10))
			}
		}, blobs(0, content.MaxOthers+1, 10), nil, 0, content.MaxOthers + 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := &places{}
			test.before(p)
			others, extra, own := parcelsOf(p.claim("root", test.chunks))
			if !slices.Equal(others, test.others) || extra != test.extra || own != test.own {
				t.Errorf("others %v, %d chunks in parcels of their own and %d with the root, want %v, %d and %d",
					others, extra, own, test.others, test.extra, test.own)
			}
		})
	}
}

// TestClaimsStayBounded changes one chunk after the other: what a new agent
// must read stays a few parcels and about twice of what it needs.
func TestClaimsStayBounded(t *testing.T) {
	p, sizes := &places{}, map[string]int{}
	chunks, written := blobs(0, 100, 10), 0
	for n := range 500 {
		chunks[n%100] = blobs(1000+n, 1001+n, 10)[0]
		root := fmt.Sprintf("root-%d", n)
		c := p.claim(root, chunks)
		p.settle(c, nil)
		sizes[root] = len(c.own.blobs)
		written += len(c.own.blobs)
		read := len(c.own.blobs)
		for _, o := range c.others {
			read += sizes[o.name]
		}
		if len(c.others) > content.MaxOthers || read > 2*len(chunks)+8 {
			t.Fatalf("after %d changes a new agent reads %d parcels with %d chunks", n, len(c.others), read)
		}
	}
	t.Logf("%d chunks written in 500 changes", written)
	if written > 500*100/5 {
		t.Errorf("%d chunks were written for 500 changes of one", written)
	}
}
