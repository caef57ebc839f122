// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package taglabel_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"github.com/oracle/oci-cloud-controller-manager/pkg/taglabel"
)

func TestKeys(t *testing.T) {
	long := strings.Repeat("k", 63)
	for _, test := range []struct {
		parse       func(string) (taglabel.Tag, error)
		text, label string
		fault       string // part of the error
	}{
		{parse: taglabel.Defined, text: "Operations.CostCenter", label: "Operations.CostCenter"},
		{parse: taglabel.Defined, text: "Oracle-Tags.CreatedBy", label: "Oracle-Tags.CreatedBy"},
		{parse: taglabel.Defined, text: "a/b.c:d", label: "a_b.c_d"},
		{parse: taglabel.Defined, text: "_a-.-b_", label: "a.b"},
		{parse: taglabel.Defined, text: "fault.domain", label: "fault.domain"},
		{parse: taglabel.Defined, text: "CostCenter", fault: "namespace.key"},
		{parse: taglabel.Defined, text: "", fault: "namespace.key"},
		{parse: taglabel.Defined, text: ".a", fault: "namespace.key"},
		{parse: taglabel.Defined, text: "a.", fault: "namespace.key"},
		{parse: taglabel.Defined, text: "a.b.c", fault: "namespace.key"},
		{parse: taglabel.Defined, text: "a.b c", fault: "no blanks"},
		{parse: taglabel.Defined, text: "ä.b", fault: "ASCII"},
		{parse: taglabel.Defined, text: "---.b", fault: "neither a letter nor a digit"},
		{parse: taglabel.Defined, text: "a." + long, fault: "at most 63 characters, this would have 65"},
		{parse: taglabel.Defined, text: strings.Repeat("-", 100) + "a.b", fault: "at most 100 characters"},
		{parse: taglabel.Freeform, text: "pool", label: "pool"},
		{parse: taglabel.Freeform, text: long, label: long},
		{parse: taglabel.Freeform, text: "cost@center!", label: "cost_center"},
		{parse: taglabel.Freeform, text: "", fault: "want the key"},
		{parse: taglabel.Freeform, text: "a.b", fault: "no period"},
		{parse: taglabel.Freeform, text: "a\tb", fault: "no blanks"},
		{parse: taglabel.Freeform, text: "fault-domain", fault: "oci.oraclecloud.com/fault-domain has a meaning of its own"},
		{parse: taglabel.Freeform, text: "-fault-domain", fault: "has a meaning of its own"},
		{parse: taglabel.Freeform, text: long + "x", fault: "at most 63 characters, this would have 64"},
	} {
		tag, err := test.parse(test.text)
		if test.fault != "" {
			if err == nil || !strings.Contains(err.Error(), test.fault) {
				t.Errorf("%q: error %v; want one with %q", test.text, err, test.fault)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", test.text, err)
			continue
		}
		if want := "oci.oraclecloud.com/" + test.label; tag.Label() != want || tag.String() != test.text {
			t.Errorf("%q: label %s, text %s; want %s", test.text, tag.Label(), tag, want)
		}
	}
}

func TestValues(t *testing.T) {
	freeform := map[string]string{"pool": "a b", "empty": ""}
	defined := map[string]map[string]any{
		"Operations": {"CostCenter": "42", "Number": float64(123456789), "Half": 0.5, "Bool": true, "Null": nil, "Greek": "αβγ"},
	}
	for _, test := range []struct {
		tag  taglabel.Tag
		want string
		has  bool
	}{
		{taglabel.Tag{Key: "pool"}, "a_b", true},
		{taglabel.Tag{Key: "Pool"}, "", false}, // case counts
		{taglabel.Tag{Key: "empty"}, "", true},
		{taglabel.Tag{Namespace: "Operations", Key: "CostCenter"}, "42", true},
		{taglabel.Tag{Namespace: "operations", Key: "costcenter"}, "42", true}, // case does not count
		{taglabel.Tag{Namespace: "Operations", Key: "Number"}, "123456789", true},
		{taglabel.Tag{Namespace: "Operations", Key: "Half"}, "0.5", true},
		{taglabel.Tag{Namespace: "Operations", Key: "Bool"}, "true", true},
		{taglabel.Tag{Namespace: "Operations", Key: "Null"}, "", true},
		{taglabel.Tag{Namespace: "Operations", Key: "Greek"}, "", true},
		{taglabel.Tag{Namespace: "Operations", Key: "None"}, "", false},
		{taglabel.Tag{Namespace: "None", Key: "CostCenter"}, "", false},
	} {
		keptFreeform, keptDefined := taglabel.NewKeeper([]taglabel.Tag{test.tag}).Keep(freeform, defined)
		for name, tags := range map[string]struct {
			freeform map[string]string
			defined  map[string]map[string]any
		}{"all": {freeform, defined}, "kept": {keptFreeform, keptDefined}} {
			value, has, known := test.tag.Value(tags.freeform, tags.defined)
			if value != test.want || has != test.has || !known {
				t.Errorf("%s of %s tags: %q, %v, known %v; want %q, %v", test.tag, name, value, has, known, test.want, test.has)
			}
		}
	}
}

// What the API did not say is not known; an empty map is.
func TestUnknownIsNotNone(t *testing.T) {
	both := []taglabel.Tag{{Key: "pool"}, {Namespace: "a", Key: "b"}}
	for _, known := range []bool{true, false} {
		var freeform map[string]string
		var defined map[string]map[string]any
		if known {
			freeform, defined = map[string]string{"x": "y"}, map[string]map[string]any{"x": {"y": "z"}}
		}
		keptFreeform, keptDefined := taglabel.NewKeeper(both).Keep(freeform, defined)
		if len(keptFreeform) != 0 || len(keptDefined) != 0 {
			t.Errorf("kept %v, %v", keptFreeform, keptDefined)
		}
		for _, tag := range both {
			if _, has, got := tag.Value(keptFreeform, keptDefined); has || got != known {
				t.Errorf("%s: has %v, known %v; want known %v", tag, has, got, known)
			}
		}
	}
	// Who asks for nothing keeps nothing.
	if f, d := taglabel.NewKeeper(nil).Keep(map[string]string{"x": "y"}, map[string]map[string]any{"x": {"y": "z"}}); f != nil || d != nil {
		t.Errorf("kept %v, %v", f, d)
	}
	if diff := cmp.Diff(map[string]string{"pool": "a"}, first(taglabel.NewKeeper(both).Keep(map[string]string{"pool": "a", "x": "y"}, nil))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Instances with the same tags share what is kept of them; others do not, however many there are.
func TestKeeperShares(t *testing.T) {
	k := taglabel.NewKeeper([]taglabel.Tag{{Key: "pool"}, {Namespace: "a", Key: "b"}})
	for range 2 {
		for i := range 3000 {
			want := fmt.Sprint(i)
			f, d := k.Keep(map[string]string{"pool": want, "x": "y"}, map[string]map[string]any{"a": {"b": want}})
			if f["pool"] != want || d["a"]["b"] != want || len(f) != 1 {
				t.Fatalf("%d: %v, %v", i, f, d)
			}
		}
	}
	f1, _ := k.Keep(map[string]string{"pool": "blue", "host": "1"}, nil)
	f2, d := k.Keep(map[string]string{"pool": "blue", "host": "2"}, nil)
	if f1["mark"] = "x"; f2["mark"] != "x" || d != nil {
		t.Error("two maps for equal tags")
	}
	if f, d := k.Keep(nil, map[string]map[string]any{}); f != nil || d == nil {
		t.Errorf("unknown and none are mixed up: %v, %v", f, d)
	}
}

func first(m map[string]string, _ map[string]map[string]any) map[string]string { return m }

// Whatever a tag says, Kubernetes takes it; what is legal already stays as it is.
func TestLabelsAreLegal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-zA-Z0-9._/ -]{0,80}`)).Draw(t, "text")
		value := taglabel.LegalValue(text)
		if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
			t.Errorf("value %q of %q: %v", value, text, problems)
		}
		if len(validation.IsValidLabelValue(text)) == 0 && value != text {
			t.Errorf("%q became %q", text, value)
		}
		for _, parse := range []func(string) (taglabel.Tag, error){taglabel.Defined, taglabel.Freeform} {
			tag, err := parse(text)
			if err != nil {
				continue
			}
			if problems := validation.IsQualifiedName(tag.Label()); len(problems) > 0 {
				t.Errorf("key %q of %q: %v", tag.Label(), text, problems)
			}
			// The two kinds never have one label.
			if strings.Count(tag.Label(), ".") != 2+strings.Count(text, ".") {
				t.Errorf("key %q of %q", tag.Label(), text)
			}
		}
	})
}
