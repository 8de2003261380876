package fleetyaml

import (
	"cmp"
	"strings"
)

// Nearest returns the candidate that a person most likely meant by name, or ""
// where none is near enough to be worth a guess.
func Nearest(name string, candidates []string) string {
	const typo = 2
	return cmp.Or(
		within(typo, name, candidates),
		containing(name, candidates),
		within(len(name)/3, name, candidates),
	)
}

// within returns the nearest candidate of at most this distance.
func within(distance int, name string, candidates []string) string {
	best, limit := "", distance+1
	for _, candidate := range candidates {
		if d := edits(strings.ToLower(name), strings.ToLower(candidate)); d < limit {
			best, limit = candidate, d
		}
	}
	return best
}

// containing finds what was written with a word too many, such as
// targetNamespace for namespace.
func containing(name string, candidates []string) string {
	const shortest = 4
	best := ""
	for _, candidate := range candidates {
		contained := strings.Contains(strings.ToLower(name), strings.ToLower(candidate))
		if contained && len(candidate) >= shortest && len(candidate) > len(best) {
			best = candidate
		}
	}
	return best
}

// edits counts the letters to insert, delete, replace or swap with their
// neighbour to get from a to b.
func edits(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replace := last[j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			row[j] = min(last[j]+1, row[j-1]+1, replace)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
