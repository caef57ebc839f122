// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package nearest

import (
	"math"
	"strings"
	"testing"
)

func TestDistance(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"a", "", 1}, {"", "ab", 2}, {"region", "region", 0}, {"regoin", "region", 1}, {"regon", "region", 1},
		{"regionn", "region", 1}, {"legion", "region", 1}, {"kitten", "sitting", 3},
	} {
		if got := distance(test.a, test.b); got != test.want {
			t.Errorf("distance(%q, %q) = %d, want %d", test.a, test.b, got, test.want)
		}
	}
	if d := distance("abc", strings.Repeat("x", 50)); d != 50 || d == math.MaxInt {
		t.Errorf("got %d", d)
	}
}

func TestWord(t *testing.T) {
	for word, want := range map[string]string{
		"VpusPerGB": "vpusPerGB", "attachmentType": "attachment-type", "atachment-type": "attachment-type", "replicas": "",
	} {
		if got := Word(word, []string{"attachment-type", "vpusPerGB"}); got != want {
			t.Errorf("Word(%q) = %q, want %q", word, got, want)
		}
	}
}
