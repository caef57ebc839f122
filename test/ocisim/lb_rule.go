// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/http"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/loadbalancer"
)

// withRuleDefaults fills in the fields of a rule that the API documents defaults for. That the service shows them is not
// established; a client that compares whole rules must not take them for a difference.
func withRuleDefaults(rule loadbalancer.Rule) loadbalancer.Rule {
	fill := func(field **int, n int) {
		if *field == nil {
			*field = common.Int(n)
		}
	}
	switch r := rule.(type) {
	case loadbalancer.RedirectRule:
		fill(&r.ResponseCode, http.StatusFound)
		if r.RedirectUri == nil {
			r.RedirectUri = &loadbalancer.RedirectUri{}
		}
		uri := *r.RedirectUri
		for _, part := range []struct {
			field **string
			token string
		}{{&uri.Protocol, "{protocol}"}, {&uri.Host, "{host}"}, {&uri.Path, "/{path}"}, {&uri.Query, "?{query}"}} {
			if *part.field == nil {
				*part.field = common.String(part.token)
			}
		}
		r.RedirectUri = &uri
		return r
	case loadbalancer.ControlAccessUsingHttpMethodsRule:
		fill(&r.StatusCode, http.StatusMethodNotAllowed)
		return r
	case loadbalancer.HttpHeaderRule:
		if r.AreInvalidCharactersAllowed == nil {
			r.AreInvalidCharactersAllowed = common.Bool(false)
		}
		return r
	}
	return rule
}
