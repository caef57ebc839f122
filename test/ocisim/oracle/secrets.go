// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
)

const (
	// minSecret is the length below which a secret cannot be looked for: it would be found in any text.
	minSecret = 6
	// minLine is the length from which a line of a longer secret is a secret too: a line of a PEM block has 64.
	minLine = 16
)

// secrets looks for secret values in logs: as they are, a line of them, and in the encodings that programs use.
func (j *judge) secrets() {
	for _, s := range j.Secrets {
		if len(s.Value) < minSecret {
			j.report.add(Finding{Kind: Blind, Name: s.Name, What: fmt.Sprintf("a secret of less than %d characters cannot be looked for", minSecret)})
			continue
		}
		forms := s.forms()
		for _, log := range j.Logs {
			if where, how := find(log.Text, forms); where > 0 {
				j.report.add(Finding{Kind: Exposed, Name: s.Name, What: fmt.Sprintf("%s has %s in line %d", log.Name, how, where)})
			}
		}
	}
}

// form is one way in which a secret may stand in a text.
type form struct {
	text, how string
}

func (s *Secret) forms() []form {
	forms := []form{{s.Value, "the value"}}
	add := func(text, how string) {
		if text != s.Value && len(text) >= minSecret {
			forms = append(forms, form{text, how})
		}
	}
	if quoted, err := json.Marshal(s.Value); err == nil {
		add(strings.Trim(string(quoted), `"`), "the value, quoted,")
	}
	add(url.QueryEscape(s.Value), "the value, escaped,")
	add(base64.StdEncoding.EncodeToString([]byte(s.Value)), "the value, in base64,")
	add(strings.TrimSpace(s.Value), "the value")
	if lines := strings.Split(s.Value, "\n"); len(lines) > 1 {
		for i, line := range lines {
			line = strings.TrimSpace(line)
			if len(line) >= minLine && !strings.HasPrefix(line, "-----") {
				add(line, fmt.Sprintf("line %d of the value", i+1))
			}
		}
	}
	return forms
}

// find returns the line, from 1, in which one of the forms begins, and which; 0 for none.
func find(text string, forms []form) (line int, how string) {
	for _, f := range forms {
		if i := strings.Index(text, f.text); i >= 0 {
			return 1 + strings.Count(text[:i], "\n"), f.how
		}
	}
	return 0, ""
}
