// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxCommentColumn is where the origins stand in Describe's output at the latest, if the value leaves room.
const maxCommentColumn = 80

// Describe writes the effective configuration as YAML with the origin of each value. Secrets are redacted.
func Describe(w io.Writer, c *Config) error {
	d := &describer{tree: newTree(), doc: &document{Config: *c}}
	fmt.Fprintf(&d.out, "# Effective configuration of %s\n# Calls are made as: %s\n", c.file, c.Principal())
	d.block("", 0)
	d.writeLines()
	if len(c.Environment.values) > 0 {
		d.out.WriteString("#\n# Environment:\n")
		for _, v := range c.Environment.values {
			fmt.Fprintf(&d.out, "#   %s=%q\n", v.name, v.value)
		}
	}
	if _, err := w.Write(d.out.Bytes()); err != nil {
		return fmt.Errorf("write the effective configuration: %w", err)
	}
	return nil
}

type describer struct {
	tree  *tree
	doc   *document
	out   bytes.Buffer
	lines []describedLine
}

// describedLine is a line of YAML with the origin to be noted beside it, which may be empty.
type describedLine struct {
	text, origin string
}

// writeLines writes the lines with the origins below each other.
func (d *describer) writeLines() {
	column := 0
	for _, l := range d.lines {
		if l.origin != "" {
			column = min(max(column, len(l.text)), maxCommentColumn)
		}
	}
	for _, l := range d.lines {
		if l.origin == "" {
			d.out.WriteString(l.text + "\n")
			continue
		}
		fmt.Fprintf(&d.out, "%-*s # %s\n", column, l.text, l.origin)
	}
}

// block writes the keys of a block that are set or worth a word.
func (d *describer) block(path string, depth int) {
	for _, name := range d.tree.children(path) {
		key := join(path, name)
		if k, ok := d.tree.byPath[key]; ok {
			d.key(k, name, depth)
		} else if d.anySet(key) {
			d.line(indent(depth)+name+":", "")
			d.block(key, depth+1)
		}
	}
}

// anySet says whether a block holds a value from anywhere.
func (d *describer) anySet(block string) bool {
	for _, k := range d.tree.keys {
		if within(k.Path, block) && (d.doc.Origin(k.Path).IsSet() || k.value.show(d.doc) != nil) {
			return true
		}
	}
	return block == "auth"
}

func (d *describer) key(k *Key, name string, depth int) {
	if k.Replacement != "" {
		return // its value is shown under the successor's name
	}
	shown, origin := k.value.show(d.doc), d.doc.Origin(k.Path)
	switch {
	case shown != nil:
	case k.Default == "false":
		shown = false
		if !origin.IsSet() {
			origin = Origin{source: fromDefault}
		}
	case k.Default != "":
		d.line(fmt.Sprintf("%s# %s: not set; default: %s", indent(depth), name, strings.ReplaceAll(k.Default, "`", "")), "")
		return
	default:
		return
	}
	if isScalar(shown) {
		d.line(indent(depth)+name+": "+encode(shown), origin.String())
		return
	}
	d.line(indent(depth)+name+":", origin.String())
	for line := range strings.Lines(encode(shown)) {
		d.line(indent(depth+1)+strings.TrimSuffix(line, "\n"), "")
	}
}

func (d *describer) line(text, origin string) {
	d.lines = append(d.lines, describedLine{text, origin})
}

// encode writes a value as YAML: a scalar in one line, a mapping in several.
func encode(v any) string {
	if s, ok := v.(string); ok && strings.ContainsAny(s, "\r\n") {
		return strconv.Quote(s)
	}
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := e.Encode(v); err != nil {
		return strconv.Quote(err.Error()) // only for types that no key has
	}
	return strings.TrimSuffix(out.String(), "\n")
}

func isScalar(v any) bool {
	switch v.(type) {
	case map[string]string, map[string]map[string]any, []string:
		return false
	}
	return true
}

func indent(depth int) string { return strings.Repeat("  ", depth) }
