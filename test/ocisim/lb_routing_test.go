// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/loadbalancer"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

// httpListener uses what a test gives it.
func httpListener(change object) object {
	l := object{"name": "web", "defaultBackendSetName": "TCP-80", "port": 8080, "protocol": "HTTP"}
	for k, v := range change {
		l[k] = v
	}
	return l
}

// want204 makes a change and lets it be applied.
func (p *pier) want204(r response) {
	p.t.Helper()
	r.want(http.StatusNoContent)
	settle()
	if work := p.lbWork(r); str(work, "lifecycleState") != "SUCCEEDED" {
		p.t.Fatalf("work request %v", work)
	}
}

// TestNamedPartsOfALoadBalancer takes each sort of part through its life: create, twice, get, list, use by a listener, refused
// deletion, update, deletion.
func TestNamedPartsOfALoadBalancer(t *testing.T) {
	forward := []object{{"name": "FORWARD_TO_BACKENDSET", "backendSetName": "TCP-80"}}
	rule := object{"name": "a", "condition": "any(http.request.url.path sw (i '/v'))", "actions": forward}
	route := object{"path": "/v", "pathMatchType": object{"matchType": "PREFIX_MATCH"}, "backendSetName": "TCP-80"}
	for sort, part := range map[string]struct {
		create, update object
		use            object
		changed        string // in the answer after the update
	}{
		"hostnames": {
			create: object{"name": "part", "hostname": "a.example.com"}, update: object{"hostname": "*.example.com"},
			use: object{"hostnameNames": []string{"part"}}, changed: "*.example.com",
		},
		"routingPolicies": {
			create: object{"name": "part", "conditionLanguageVersion": "V1", "rules": []object{rule}},
			update: object{"rules": []object{{"name": "b", "condition": "any()", "actions": forward}}},
			use:    object{"routingPolicyName": "part"}, changed: `"name":"b"`,
		},
		"pathRouteSets": {
			create: object{"name": "part", "pathRoutes": []object{route}},
			update: object{"pathRoutes": []object{route, {"path": "/w", "pathMatchType": object{"matchType": "EXACT_MATCH"}, "backendSetName": "TCP-80"}}},
			use:    object{"pathRouteSetName": "part"}, changed: `"/w"`,
		},
		"ruleSets": {
			create: object{"name": "part", "items": []object{{"action": "ADD_HTTP_REQUEST_HEADER", "header": "x", "value": "y"}}},
			update: object{"items": []object{{"action": "REMOVE_HTTP_REQUEST_HEADER", "header": "z"}}},
			use:    object{"ruleSetNames": []string{"part"}}, changed: `"z"`,
		},
	} {
		t.Run(sort, func(t *testing.T) {
			onPier(t, ocisim.Options{Seed: 40}, func(t *testing.T, p *pier) {
				lb := lbPath + "/" + p.newLB(nil)
				all, one := lb+"/"+sort, lb+"/"+sort+"/part"
				p.get(one).wantError(http.StatusNotFound, "NotAuthorizedOrNotFound")
				p.post(lb+"/listeners", httpListener(part.use)).wantError(http.StatusBadRequest, "InvalidParameter")
				p.want204(p.post(all, part.create))
				p.post(all, part.create).wantError(http.StatusConflict, "NotAuthorizedOrResourceAlreadyExists")
				if got := p.get(one).want(http.StatusOK); str(got.object(), "name") != "part" || got.header.Get("Etag") == "" {
					t.Errorf("part %s, etag %q", got.body, got.header.Get("Etag"))
				}
				if list := p.get(all).want(http.StatusOK).array(); len(list) != 1 || str(list[0], "name") != "part" {
					t.Errorf("list %v", list)
				}
				p.want204(p.post(lb+"/listeners", httpListener(part.use)))
				p.delete(one).wantError(http.StatusConflict, "Conflict")
				p.want204(p.put(one, part.update))
				if got := p.get(one).want(http.StatusOK); !strings.Contains(string(got.body), part.changed) || str(got.object(), "name") != "part" {
					t.Errorf("after the update: %s", got.body)
				}
				p.put(lb+"/"+sort+"/none", part.update).wantError(http.StatusNotFound, "NotAuthorizedOrNotFound")
				p.want204(p.delete(lb + "/listeners/web"))
				p.want204(p.delete(one))
				p.delete(one).wantError(http.StatusNotFound, "NotAuthorizedOrNotFound")
			})
		})
	}
}

func TestRoutingThroughTheSDK(t *testing.T) {
	onPier(t, ocisim.Options{Seed: 41, PageSize: 1}, func(t *testing.T, p *pier) {
		id, ctx := p.newLB(nil), t.Context()
		for _, name := range []string{"b", "a", "c"} {
			granted[loadbalancer.CreateRoutingPolicyResponse](t)(p.lb.CreateRoutingPolicy(ctx, loadbalancer.CreateRoutingPolicyRequest{
				LoadBalancerId: &id, CreateRoutingPolicyDetails: loadbalancer.CreateRoutingPolicyDetails{
					Name: common.String(name), ConditionLanguageVersion: loadbalancer.CreateRoutingPolicyDetailsConditionLanguageVersionV1,
					Rules: []loadbalancer.RoutingRule{{
						Name: common.String("r"), Condition: common.String("all(http.request.headers[(i 'host')] eq (i 'x'))"),
						Actions: []loadbalancer.Action{loadbalancer.ForwardToBackendSet{BackendSetName: common.String("TCP-80")}},
					}},
				},
			}))
		}
		settle()
		if got := policyNames(ctx, t, p, id); strings.Join(got, " ") != "a b c" {
			t.Errorf("routing policies %v in pages of one", got)
		}
		granted[loadbalancer.CreateRuleSetResponse](t)(p.lb.CreateRuleSet(ctx, loadbalancer.CreateRuleSetRequest{
			LoadBalancerId: &id, CreateRuleSetDetails: loadbalancer.CreateRuleSetDetails{Name: common.String("rules"), Items: []loadbalancer.Rule{
				loadbalancer.RemoveHttpRequestHeaderRule{Header: common.String("x")},
			}},
		}))
		settle()
		p.want204(p.post(lbPath+"/"+id+"/listeners", httpListener(object{"ruleSetNames": []string{"rules"}})))
		name := "web"
		rules := granted[loadbalancer.ListListenerRulesResponse](t)(p.lb.ListListenerRules(ctx, loadbalancer.ListListenerRulesRequest{LoadBalancerId: &id, ListenerName: &name}))
		if len(rules.Items) != 1 || *rules.Items[0].RuleSetName != "rules" {
			t.Fatalf("rules %v", rules.Items)
		}
		if r, ok := rules.Items[0].Rule.(loadbalancer.RemoveHttpRequestHeaderRule); !ok || *r.Header != "x" {
			t.Errorf("rule %v", rules.Items[0].Rule)
		}
		// A backend set is in use also through a route.
		p.want204(p.post(lbPath+"/"+id+"/backendSets", withName("routed", lbSet())))
		p.want204(p.put(lbPath+"/"+id+"/routingPolicies/a", object{"rules": []object{{
			"name": "r", "condition": "any()", "actions": []object{{"name": "FORWARD_TO_BACKENDSET", "backendSetName": "routed"}},
		}}}))
		p.delete(lbPath+"/"+id+"/backendSets/routed").wantError(http.StatusBadRequest, "InvalidParameter")
	})
}

func policyNames(ctx context.Context, t *testing.T, p *pier, id string) []string {
	t.Helper()
	var names []string
	var page *string
	for {
		list := granted[loadbalancer.ListRoutingPoliciesResponse](t)(p.lb.ListRoutingPolicies(ctx, loadbalancer.ListRoutingPoliciesRequest{LoadBalancerId: &id, Page: page}))
		for _, policy := range list.Items {
			names = append(names, *policy.Name)
		}
		if page = list.OpcNextPage; page == nil {
			return names
		}
	}
}

func TestPartsThatALoadBalancerRefuses(t *testing.T) {
	onPier(t, ocisim.Options{Seed: 42}, func(t *testing.T, p *pier) {
		p.region.SetBehaviour(func(b *ocisim.Behaviour) {
			r := b.Rulings[ocisim.HostnameNeedsHTTP]
			r.Allow = false
			b.Rulings[ocisim.HostnameNeedsHTTP] = r
		})
		lb := lbPath + "/" + p.newLB(object{"hostnames": object{"taken": object{"name": "taken", "hostname": "taken.example.com"}}})
		forward := []object{{"name": "FORWARD_TO_BACKENDSET", "backendSetName": "TCP-80"}}
		policy := func(name string, rules ...object) object {
			return object{"name": name, "conditionLanguageVersion": "V1", "rules": rules}
		}
		routes := func(list ...object) object { return object{"name": "r", "pathRoutes": list} }
		route := func(path, match, set string) object {
			return object{"path": path, "pathMatchType": object{"matchType": match}, "backendSetName": set}
		}
		for name, change := range map[string]struct {
			path string
			body object
			code string
		}{
			"host name with a blank":         {"hostnames", object{"name": "h", "hostname": "a b"}, "InvalidParameter"},
			"asterisk in the middle":         {"hostnames", object{"name": "h", "hostname": "a.*.com"}, "InvalidParameter"},
			"name with a blank":              {"hostnames", object{"name": "h h", "hostname": "a.com"}, "InvalidParameter"},
			"no host name":                   {"hostnames", object{"name": "h"}, "MissingParameter"},
			"condition without end":          {"routingPolicies", policy("p", object{"name": "a", "condition": "any(x", "actions": forward}), "InvalidParameter"},
			"condition with an open quote":   {"routingPolicies", policy("p", object{"name": "a", "condition": "any('x)", "actions": forward}), "InvalidParameter"},
			"rule with a dash":               {"routingPolicies", policy("p", object{"name": "a-b", "condition": "any()", "actions": forward}), "InvalidParameter"},
			"policy without rules":           {"routingPolicies", policy("p"), "MissingParameter"},
			"two rules of one name":          {"routingPolicies", policy("p", object{"name": "a", "condition": "any()", "actions": forward}, object{"name": "a", "condition": "any()", "actions": forward}), "InvalidParameter"},
			"rule to nowhere":                {"routingPolicies", policy("p", object{"name": "a", "condition": "any()", "actions": []object{{"name": "FORWARD_TO_BACKENDSET", "backendSetName": "none"}}}), "InvalidParameter"},
			"unknown version":                {"routingPolicies", object{"name": "p", "conditionLanguageVersion": "V9", "rules": []object{}}, "InvalidParameter"},
			"route to nowhere":               {"pathRouteSets", routes(route("/", "EXACT_MATCH", "none")), "InvalidParameter"},
			"route with an asterisk":         {"pathRouteSets", routes(route("/*", "EXACT_MATCH", "TCP-80")), "InvalidParameter"},
			"relative prefix":                {"pathRouteSets", routes(route("a", "PREFIX_MATCH", "TCP-80")), "InvalidParameter"},
			"same route in other letters":    {"pathRouteSets", routes(route("/a", "EXACT_MATCH", "TCP-80"), route("/A", "EXACT_MATCH", "TCP-80")), "InvalidParameter"},
			"unknown match":                  {"pathRouteSets", routes(route("/a", "REGEX", "TCP-80")), "InvalidParameter"},
			"host name on a TCP listener":    {"listeners", httpListener(object{"protocol": "TCP", "hostnameNames": []string{"taken"}}), "InvalidParameter"},
			"same port without a host name":  {"listeners", httpListener(object{"port": 80}), "InvalidParameter"},
			"backends over 512":              {"backendSets", withName("big", lbSet(manyBackends(513)...)), "LimitExceeded"},
			"too few connections":            {"backendSets", withName("s", object{"policy": "IP_HASH", "healthChecker": object{"protocol": "TCP"}, "backendMaxConnections": 10}), "InvalidParameter"},
			"cookie that ends at once":       {"backendSets", withName("s", object{"policy": "IP_HASH", "healthChecker": object{"protocol": "TCP"}, "lbCookieSessionPersistenceConfiguration": object{"maxAgeInSeconds": 0}}), "InvalidParameter"},
			"cookies of backend and service": {"backendSets", withName("s", object{"policy": "IP_HASH", "healthChecker": object{"protocol": "TCP"}, "lbCookieSessionPersistenceConfiguration": object{}, "sessionPersistenceConfiguration": object{"cookieName": "*"}}), "InvalidParameter"},
		} {
			if r := p.post(lb+"/"+change.path, change.body); r.status != http.StatusBadRequest || str(r.object(), "code") != change.code {
				t.Errorf("%s: %d %s, want 400 %s", name, r.status, r.body, change.code)
			}
		}
		p.post(lb+"/hostnames", object{"name": "h", "hostname": "TAKEN.example.com"}).wantError(http.StatusConflict, "Conflict")
	})
}

func manyBackends(n int) []string {
	list := make([]string, 0, n)
	for i := range n {
		list = append(list, "10.0.2.2:"+itoa(i+1))
	}
	return list
}

// TestListenersShareAPortByHostname is what host names are for.
func TestListenersShareAPortByHostname(t *testing.T) {
	onPier(t, ocisim.Options{Seed: 43}, func(t *testing.T, p *pier) {
		lb := lbPath + "/" + p.newLB(object{"hostnames": object{
			"a": object{"name": "a", "hostname": "a.example.com"}, "b": object{"name": "b", "hostname": "b.example.com"},
		}})
		listener := func(name string, hosts ...string) object {
			return withName(name, httpListener(object{"hostnameNames": hosts}))
		}
		p.want204(p.post(lb+"/listeners", listener("a", "a")))
		p.want204(p.post(lb+"/listeners", listener("b", "b")))
		p.want204(p.post(lb+"/listeners", listener("rest")))
		p.post(lb+"/listeners", listener("again", "b")).wantError(http.StatusBadRequest, "InvalidParameter")
		p.post(lb+"/listeners", listener("rest2")).wantError(http.StatusBadRequest, "InvalidParameter")
		p.region.SetBehaviour(func(b *ocisim.Behaviour) {
			r := b.Rulings[ocisim.ListenersShareAPortByHostname]
			r.Allow = false
			b.Rulings[ocisim.ListenersShareAPortByHostname] = r
		})
		p.put(lb+"/listeners/b", listener("b", "b")).wantError(http.StatusBadRequest, "InvalidParameter")
	})
}

func TestLimitsOfParts(t *testing.T) {
	onPier(t, ocisim.Options{Seed: 44}, func(t *testing.T, p *pier) {
		lb := lbPath + "/" + p.newLB(nil)
		p.region.SetBehaviour(func(b *ocisim.Behaviour) { b.BalancerLimits["hostnames"] = 1 })
		p.want204(p.post(lb+"/hostnames", object{"name": "a", "hostname": "a.com"}))
		p.post(lb+"/hostnames", object{"name": "b", "hostname": "b.com"}).wantError(http.StatusBadRequest, "LimitExceeded")
		p.want204(p.put(lb+"/hostnames/a", object{"hostname": "b.com"}))
		p.region.SetBehaviour(func(b *ocisim.Behaviour) { delete(b.BalancerLimits, "hostnames") })
		p.want204(p.post(lb+"/hostnames", object{"name": "b", "hostname": "c.com"}))
	})
}

// TestCreateWithAllParts creates in one call what others create part by part.
func TestCreateWithAllParts(t *testing.T) {
	onPier(t, ocisim.Options{Seed: 45}, func(t *testing.T, p *pier) {
		certificate, key := selfSigned(t, "web.example.com")
		id := p.newLB(object{
			"hostnames":       object{"h": object{"name": "h", "hostname": "a.example.com"}},
			"pathRouteSets":   object{"r": object{"pathRoutes": []object{{"path": "/", "pathMatchType": object{"matchType": "EXACT_MATCH"}, "backendSetName": "TCP-80"}}}},
			"sslCipherSuites": object{"own": object{"name": "own", "ciphers": []string{"ECDHE-RSA-AES128-GCM-SHA256"}}},
			"ruleSets":        object{"rules": object{"items": []object{{"action": "REMOVE_HTTP_REQUEST_HEADER", "header": "x"}}}},
			"certificates":    object{"c": object{"certificateName": "c", "publicCertificate": certificate, "privateKey": key}},
			"listeners": object{"web": object{
				"defaultBackendSetName": "TCP-80", "port": 443, "protocol": "HTTP", "hostnameNames": []string{"h"}, "pathRouteSetName": "r", "ruleSetNames": []string{"rules"},
				"sslConfiguration": object{"certificateName": "c", "cipherSuiteName": "own"},
			}},
		})
		got := granted[loadbalancer.GetLoadBalancerResponse](t)(p.lb.GetLoadBalancer(t.Context(), loadbalancer.GetLoadBalancerRequest{LoadBalancerId: &id}))
		l := got.Listeners["web"]
		if got.LifecycleState != loadbalancer.LoadBalancerLifecycleStateActive || *l.SslConfiguration.CipherSuiteName != "own" ||
			*got.Hostnames["h"].Hostname != "a.example.com" || len(got.PathRouteSets["r"].PathRoutes) != 1 || *got.SslCipherSuites["own"].Name != "own" {
			t.Errorf("load balancer %v", got.LoadBalancer)
		}
		if text := string(p.region.Snapshot()); strings.Contains(text, "PRIVATE KEY") {
			t.Error("the snapshot shows a private key")
		}
		p.post(lbPath, p.lbBody(object{"hostnames": object{"h": object{"name": "other", "hostname": "a.b"}}})).wantError(http.StatusBadRequest, "InvalidParameter")
	})
}
