// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/oracle/oci-cloud-controller-manager/internal/nearest"
)

// tree is the key table as a tree.
type tree struct {
	keys   []Key
	byPath map[string]*Key
	blocks map[string][]string // block to its children, in table order
}

func newTree() *tree {
	t := &tree{keys: Keys(), byPath: map[string]*Key{}, blocks: map[string][]string{}}
	for i := range t.keys {
		k := &t.keys[i]
		t.byPath[k.Path] = k
		for path := k.Path; path != ""; path = parent(path) {
			if !slices.Contains(t.blocks[parent(path)], last(path)) {
				t.blocks[parent(path)] = append(t.blocks[parent(path)], last(path))
			}
		}
	}
	return t
}

// children returns the names that a block may hold.
func (t *tree) children(block string) []string { return t.blocks[block] }

func (t *tree) isBlock(path string) bool { return len(t.blocks[path]) > 0 }

// decoder walks the nodes of one file.
type decoder struct {
	tree   *tree
	file   string
	doc    *document
	report *Report
	// places are the nodes of all keys and blocks that have a value.
	places map[string]*yaml.Node
	// shadow is set within a block whose name is misspelt: its content has no effect, but its mistakes are worth telling.
	shadow bool
}

// problem adds p with the place of node n, which may be nil.
func (d *decoder) problem(n *yaml.Node, p Problem) {
	p.File = d.file
	if n != nil {
		p.Line, p.Column = n.Line, n.Column
	}
	if d.shadow && p.Severity == Error {
		p.Severity, p.Strict = Warning, true
	}
	d.report.Problems = append(d.report.Problems, p)
}

// nearestPlace returns the node of a key, or else of the innermost block around it.
func (d *decoder) nearestPlace(key string) *yaml.Node {
	for ; key != ""; key = parent(key) {
		if n, ok := d.places[key]; ok {
			return n
		}
	}
	return d.places[""]
}

// block decodes the mapping n, whose key path is path.
func (d *decoder) block(path string, n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		d.problem(n, Problem{Severity: Error, Key: path, Message: fmt.Sprintf("want a mapping with the keys %s; got a %s",
			strings.Join(d.tree.children(path), ", "), shape(n))})
		return
	}
	entries, faults := entriesOf(n)
	d.faults(path, faults)
	for _, e := range entries {
		d.entry(path, e)
	}
}

// entry decodes one key of a block and its value.
func (d *decoder) entry(block string, e entry) {
	path := join(block, e.key.Value)
	key, known := d.tree.byPath[path]
	if !known && !d.tree.isBlock(path) {
		d.unknown(block, e)
		return
	}
	v := resolve(e.value)
	if isNull(v) {
		return // as if the key were not there
	}
	if !known {
		d.place(path, e.key)
		if path == "metrics" && !d.shadow {
			d.doc.Metrics.Enabled = true
		}
		d.block(path, v)
		return
	}
	if key.Replacement != "" {
		d.problem(e.key, Problem{Key: path, Message: "deprecated: use " + key.Replacement})
	}
	if v.Kind != yaml.ScalarNode || v.Value != "" {
		d.place(path, e.key)
	}
	target := d.doc
	if d.shadow {
		target = &document{}
	}
	d.faults(path, key.value.decode(v, target))
}

// place records where a key is.
func (d *decoder) place(path string, n *yaml.Node) {
	if !d.shadow {
		d.places[path] = n
		d.doc.setOrigin(path, Origin{source: fromFile, file: d.file, line: n.Line})
	}
}

// faults turns the faults of a value into problems.
func (d *decoder) faults(path string, faults []fault) {
	for _, f := range faults {
		p := Problem{Severity: Error, Key: path, Message: f.message}
		if f.sub != "" {
			p.Key = join(path, name(f.sub))
		}
		if f.got != "" && !within(path, "auth") { // where a neighbour's secret may have slipped to
			p.Message += ", got " + quote(f.got)
		}
		if f.warning {
			p.Severity, p.Strict = Warning, true
		}
		d.problem(f.node, p)
	}
}

// unknown reports a key that is not in the table.
func (d *decoder) unknown(block string, e entry) {
	word := e.key.Value
	p := Problem{Key: join(block, name(word)), Strict: true, Suggestion: d.tree.suggest(block, word)}
	switch {
	case p.Suggestion == "":
		p.Message = "unknown key; known here: " + strings.Join(d.current(block), ", ")
	case parent(p.Suggestion) != block:
		p.Message = fmt.Sprintf("unknown key here; its place is %s", p.Suggestion)
	case nearest.Same(word, last(p.Suggestion)):
		p.Message = fmt.Sprintf("unknown key: write %s, exactly so", last(p.Suggestion))
	default:
		p.Message = fmt.Sprintf("unknown key; did you mean %s?", last(p.Suggestion))
	}
	d.problem(e.key, p)

	v := resolve(e.value)
	if p.Suggestion != "" && d.tree.isBlock(p.Suggestion) && v.Kind == yaml.MappingNode {
		shadow := *d
		shadow.shadow = true
		shadow.block(p.Suggestion, v)
	}
}

// name is a key as it stands in messages.
func name(key string) string {
	if quoted := quote(key); !strings.HasPrefix(quoted, `"`) {
		return "(" + quoted + ")"
	}
	return key
}

// current lists the children of a block without deprecated ones.
func (d *decoder) current(block string) []string {
	return slices.DeleteFunc(slices.Clone(d.tree.children(block)), func(child string) bool {
		k := d.tree.byPath[join(block, child)]
		return k != nil && k.Replacement != ""
	})
}

// entry is one key of a mapping with its value.
type entry struct {
	key, value *yaml.Node
}

// entriesOf returns the entries of mapping n in the order in which they take effect: of equal keys the last one wins, as
// it always has, which is a fault. Entries of merge keys (<<) follow, unless the mapping has the key itself.
func entriesOf(n *yaml.Node) ([]entry, []fault) {
	var (
		entries []entry
		merges  []*yaml.Node
		faults  []fault
		index   = map[string]int{}
	)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := resolve(n.Content[i]), n.Content[i+1]
		switch first, again := index[k.Value]; {
		case k.Kind != yaml.ScalarNode:
			faults = append(faults, fault{node: n.Content[i], message: fmt.Sprintf("want a word as key, got a %s", shape(k))})
		case k.ShortTag() == "!!merge":
			merges = append(merges, v)
		case again:
			faults = append(faults, fault{node: k, sub: k.Value, warning: true,
				message: fmt.Sprintf("set twice: where they differ, this one counts and not that of line %d", entries[first].key.Line)})
			entries = append(entries, entry{k, v})
		default:
			index[k.Value] = len(entries)
			entries = append(entries, entry{k, v})
		}
	}
	for _, m := range merges {
		merged, f := merge(m, maxMergeDepth)
		faults = append(faults, f...)
		for _, e := range merged {
			if _, own := index[e.key.Value]; !own {
				index[e.key.Value] = len(entries)
				entries = append(entries, e)
			}
		}
	}
	return entries, faults
}

// maxMergeDepth bounds merge keys within merged mappings. A mapping can name itself.
const maxMergeDepth = 10

// merge returns the entries that the value of a merge key stands for.
func merge(v *yaml.Node, depth int) ([]entry, []fault) {
	v = resolve(v)
	sources := []*yaml.Node{v}
	if v.Kind == yaml.SequenceNode {
		sources = v.Content
	}
	var entries []entry
	for _, s := range sources {
		m := resolve(s)
		if m.Kind != yaml.MappingNode || depth == 0 {
			return nil, wrong(s, "want a mapping after <<, or a list of mappings, without loops")
		}
		for i := 0; i+1 < len(m.Content); i += 2 {
			if m.Content[i].ShortTag() != "!!merge" {
				entries = append(entries, entry{m.Content[i], m.Content[i+1]})
				continue
			}
			below, faults := merge(m.Content[i+1], depth-1)
			if len(faults) > 0 {
				return nil, faults
			}
			entries = append(entries, below...)
		}
	}
	return entries, nil
}

// resolve follows aliases.
func resolve(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}
