// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// keyLines finds the lines of testdata/full.yaml that begin with a key of the table, with the key's name and path.
func keyLines(t interface{ Fatal(...any) }) (all []string, keys []keyLine) {
	data, err := os.ReadFile("testdata/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	all = strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	tree := newTree()
	path := []string{}
	for i, line := range all {
		m := regexp.MustCompile(`^( *)([A-Za-z0-9]+):`).FindStringSubmatch(line)
		if m == nil {
			continue
		}
		depth := len(m[1]) / 2
		path = append(path[:min(depth, len(path))], m[2])
		p := strings.Join(path, ".")
		if _, known := tree.byPath[p]; known || tree.isBlock(p) {
			keys = append(keys, keyLine{number: i, name: m[2], path: p})
		}
	}
	return all, keys
}

type keyLine struct {
	number     int // index into the lines
	name, path string
}

// typo changes a word by one slip of the pen.
func typo(t *rapid.T, word string) string {
	letters := []rune(word)
	i := rapid.IntRange(0, len(letters)-1).Draw(t, "position")
	letter := rapid.SampledFrom([]rune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-")).Draw(t, "letter")
	switch rapid.SampledFrom([]string{"drop", "double", "replace", "insert", "swap", "case"}).Draw(t, "slip") {
	case "drop":
		return string(letters[:i]) + string(letters[i+1:])
	case "double":
		return string(letters[:i+1]) + string(letters[i:])
	case "replace":
		letters[i] = letter
	case "insert":
		return string(letters[:i]) + string(letter) + string(letters[i:])
	case "swap":
		if i > 0 {
			letters[i-1], letters[i] = letters[i], letters[i-1]
		}
	case "case":
		if upper := strings.ToUpper(string(letters[i])); upper != string(letters[i]) {
			return string(letters[:i]) + upper + string(letters[i+1:])
		}
		return strings.ToLower(word)
	}
	return string(letters)
}

// TestEveryTypoIsReported mistypes one key of a good file. There must be a message on its line, it must be an error
// under strict, and mostly it must name the right key. Nothing may be reported about another line, except that a
// required key is missing.
func TestEveryTypoIsReported(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all, keys := keyLines(t)
		key := rapid.SampledFrom(keys).Draw(t, "key")
		word := typo(t, key.name)
		wrongPath := join(parent(key.path), word)
		tree := newTree()
		if _, known := tree.byPath[wrongPath]; word == "" || strings.HasPrefix(word, "-") || known || tree.isBlock(wrongPath) {
			t.Skip("no typo")
		}
		changed := append([]string{}, all...)
		changed[key.number] = strings.Replace(changed[key.number], key.name+":", word+":", 1)

		_, report := Parse("f", []byte(strings.Join(changed, "\n")+"\n"))
		var found *Problem
		for i, p := range report.Strict().Problems {
			switch {
			case p.Line == key.number+1 && p.Key == wrongPath && p.Severity == Error:
				found = &report.Problems[i]
			default:
				t.Errorf("%s mistyped as %s: also reported: %v", key.path, word, p)
			}
		}
		if found == nil {
			t.Fatalf("%s mistyped as %s in line %d went unnoticed: %v", key.path, word, key.number+1, messages(report))
		}
		if len(key.name) > 5 && found.Suggestion != key.path && !strings.Contains(fmt.Sprint(tree.children(parent(key.path))), last(found.Suggestion)) {
			t.Errorf("%s mistyped as %s: suggested %q", key.path, word, found.Suggestion)
		}
	})
}

// TestParseNeverPanics feeds mutations of a good file.
func TestParseNeverPanics(t *testing.T) {
	data, err := os.ReadFile("testdata/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		mutant := append([]byte{}, data...)
		for range rapid.IntRange(1, 8).Draw(t, "mutations") {
			i := rapid.IntRange(0, len(mutant)-1).Draw(t, "position")
			switch rapid.IntRange(0, 2).Draw(t, "kind") {
			case 0:
				mutant[i] = rapid.SampledFrom([]byte("{}[]:-&*!|>'\"#%@` \n\t<~,?0aA\x00\xff")).Draw(t, "byte")
			case 1:
				mutant = append(mutant[:i:i], mutant[min(i+rapid.IntRange(1, 20).Draw(t, "cut"), len(mutant)-1):]...)
			case 2:
				j := rapid.IntRange(0, len(mutant)-1).Draw(t, "from")
				mutant = append(mutant[:i:i], append(append([]byte{}, mutant[j:min(j+20, len(mutant))]...), mutant[i:]...)...)
			}
		}
		c, report := Parse("f", mutant)
		if c == nil {
			t.Fatal("no config")
		}
		for _, p := range report.Problems {
			if p.Line < 1 || p.Message == "" {
				t.Errorf("problem without place or message: %#v", p)
			}
			if strings.Contains(p.Error(), "marked-passphrase") || strings.Contains(p.Error(), "bWFya2VkLXByaXZhdGUta2V5") {
				t.Errorf("a secret is in the message %q", p.Error())
			}
		}
	})
}
