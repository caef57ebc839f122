// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"bytes"
	_ "embed" // the reasons of the behaviour table
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"strings"
	"time"
	"unicode"
)

// ErrBehaviour says that the behaviour table has no such entry, or that an entry cannot have such a value.
var ErrBehaviour = errors.New("no such entry of the behaviour table")

// Behaviour returns a copy of the table in effect.
func (r *Region) Behaviour() Behaviour {
	cl := r.lock()
	defer r.mu.Unlock()
	return *cloneOf(cl.behaviour)
}

// PatchBehaviour changes the table by a document in the form of Behaviour's JSON. Entries that it does not name keep
// their values; an unknown one is an error, and then nothing is changed.
func (r *Region) PatchBehaviour(patch []byte) error {
	cl := r.lock()
	defer r.mu.Unlock()
	next := cloneOf(cl.behaviour)
	if err := json.Unmarshal(patch, next); err != nil {
		return fmt.Errorf("behaviour: %w", err)
	}
	*cl.behaviour = *next
	return nil
}

// behaviourFile is the JSON form of the table. Reasons are shown and not read.
type behaviourFile struct {
	Values  map[string]json.RawMessage    `json:"values,omitempty"`
	Reasons map[string]string             `json:"reasons,omitempty"`
	Rulings map[Situation]json.RawMessage `json:"rulings,omitempty"`
}

// MarshalJSON implements json.Marshaler: the table with the reason of each entry.
func (b Behaviour) MarshalJSON() ([]byte, error) {
	file := behaviourFile{
		Values: map[string]json.RawMessage{}, Reasons: behaviourReasons(), Rulings: map[Situation]json.RawMessage{},
	}
	for name, field := range behaviourFields(&b) {
		v := field.Interface()
		if d, ok := v.(time.Duration); ok {
			v = Duration(d)
		}
		raw, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		file.Values[name] = raw
	}
	for situation, ruling := range b.Rulings {
		raw, err := json.Marshal(ruling)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", situation, err)
		}
		file.Rulings[situation] = raw
	}
	return json.Marshal(file)
}

// UnmarshalJSON implements json.Unmarshaler. It changes what the document names; a table that is still empty starts from
// the defaults.
func (b *Behaviour) UnmarshalJSON(text []byte) error {
	if b.Rulings == nil {
		*b = *DefaultBehaviour()
	}
	var file behaviourFile
	if err := decodeStrictly(text, &file); err != nil {
		return fmt.Errorf("%w: %w", ErrBehaviour, err)
	}
	fields := behaviourFields(b)
	for _, name := range sortedKeys(file.Values) {
		field, ok := fields[name]
		if !ok {
			return fmt.Errorf("%w: %s", ErrBehaviour, name)
		}
		if err := setField(field, file.Values[name]); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrBehaviour, name, err)
		}
	}
	known := DefaultBehaviour().Rulings
	for situation, raw := range file.Rulings {
		if _, ok := known[situation]; !ok {
			return fmt.Errorf("%w: situation %q", ErrBehaviour, situation)
		}
		ruling := b.Rulings[situation]
		if err := decodeStrictly(raw, &ruling); err != nil {
			return fmt.Errorf("%w: situation %q: %w", ErrBehaviour, situation, err)
		}
		if !ruling.Allow && (ruling.Status < 400 || ruling.Status > 599) {
			return fmt.Errorf("%w: situation %q: status %d is not an error", ErrBehaviour, situation, ruling.Status)
		}
		b.Rulings[situation] = ruling
	}
	return nil
}

func decodeStrictly(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}

// behaviourFields are the entries of the table but the rulings, by their names in JSON.
func behaviourFields(b *Behaviour) map[string]reflect.Value {
	v := reflect.ValueOf(b).Elem()
	fields := map[string]reflect.Value{}
	for i := range v.NumField() {
		if name := v.Type().Field(i).Name; name != "Rulings" {
			fields[lowerCamel(name)] = v.Field(i)
		}
	}
	return fields
}

// setField reads one value. Entries of a map are changed one by one; null takes one out.
func setField(field reflect.Value, raw json.RawMessage) error {
	if d, ok := field.Addr().Interface().(*time.Duration); ok {
		return json.Unmarshal(raw, (*Duration)(d))
	}
	if field.Kind() != reflect.Map {
		return json.Unmarshal(raw, field.Addr().Interface())
	}
	var entries map[string]json.RawMessage
	if err := json.Unmarshal(raw, &entries); err != nil {
		return err
	}
	if field.IsNil() {
		field.Set(reflect.MakeMap(field.Type()))
	}
	for key, text := range entries {
		k := reflect.ValueOf(key).Convert(field.Type().Key())
		if string(text) == "null" {
			field.SetMapIndex(k, reflect.Value{})
			continue
		}
		element := reflect.New(field.Type().Elem())
		if err := json.Unmarshal(text, element.Interface()); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		field.SetMapIndex(k, element.Elem())
	}
	return nil
}

// lowerCamel is the JSON name of a field: VNICLinger is vnicLinger, MaxTagBytes is maxTagBytes.
func lowerCamel(name string) string {
	runes := []rune(name)
	for i := range runes {
		if i > 0 && i+1 < len(runes) && unicode.IsLower(runes[i+1]) || !unicode.IsUpper(runes[i]) {
			break
		}
		runes[i] = unicode.ToLower(runes[i])
	}
	return string(runes)
}

//go:embed behaviour.go
var behaviourSource string

// behaviourReasons are the comments on the fields of Behaviour: they give the reason of each entry, and stand there
// only.
func behaviourReasons() map[string]string {
	file, err := parser.ParseFile(token.NewFileSet(), "behaviour.go", behaviourSource, parser.ParseComments)
	if err != nil {
		// It was compiled.
		panic("ocisim: " + err.Error())
	}
	reasons := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || spec.Name.Name != "Behaviour" {
			return true
		}
		if fields, ok := spec.Type.(*ast.StructType); ok {
			for _, field := range fields.Fields.List {
				for _, name := range field.Names {
					reasons[lowerCamel(name.Name)] = strings.Join(strings.Fields(field.Doc.Text()), " ")
				}
			}
		}
		return false
	})
	delete(reasons, "rulings")
	return reasons
}
