// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Package nearest finds what somebody meant who misspelt a key.
package nearest

import "strings"

// Word returns the candidate that was probably meant by word, or "". Case, hyphens and underscores count for
// nothing; beyond that, one slip of the pen is allowed for every three letters.
func Word(word string, candidates []string) string {
	best, bestDistance := "", max(1, len(word)/3)+1
	for _, c := range candidates {
		if d := distance(normal(word), normal(c)); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

// Same says whether two keys differ in case, hyphens and underscores only.
func Same(a, b string) bool { return normal(a) == normal(b) }

func normal(s string) string {
	return strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(s))
}

// distance is the number of letters to insert, delete, replace, or swap with their neighbour to turn a into b
// (optimal string alignment).
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	before, last, row := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(x); i++ {
		before, last, row = last, row, before
		row[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(y)]
}
