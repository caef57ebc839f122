// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/oracle/oci-cloud-controller-manager/pkg/firewall"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
)

// explanation is an error made for people.
type explanation struct {
	reason string
	// text has everything; key has what does not change from one try to the next.
	text, key string
}

// explain says what was being done, what the cloud answered, and what to do about it. kind is the balancer's.
func explain(doing string, kind oci.BalancerKind, err error) explanation {
	var presence *oci.PresenceError
	if errors.As(err, &presence) {
		why := explain("read", kind, presence.Read)
		if presence.List != nil {
			why = explain("list", kind, presence.List)
		}
		return explanation{
			reason: ReasonCloudError,
			text:   fmt.Sprintf("%s: cannot tell whether the balancer exists: %s", doing, why.text),
			key:    doing + why.key,
		}
	}
	var workRequest *oci.WorkRequestError
	if errors.As(err, &workRequest) {
		return explainWorkRequest(doing, workRequest)
	}
	if e, ok := explainRules(doing, err); ok {
		return e
	}
	var cloud *oci.Error
	if errors.As(err, &cloud) {
		return explainCloud(doing, kind, cloud)
	}
	return explanation{reason: ReasonCloudError, text: doing + ": " + err.Error(), key: doing + err.Error()}
}

func explainWorkRequest(doing string, e *oci.WorkRequestError) explanation {
	var problems []string
	for _, p := range e.WorkRequest.Errors {
		problems = append(problems, p.Code+": "+p.Message)
	}
	cause := strings.Join(problems, "; ")
	if cause == "" {
		cause = "the service gave no cause"
	}
	text := fmt.Sprintf("%s: %s %s: %s (work request %s, opc-request-id %s)", doing, e.WorkRequest.Operation, e.WorkRequest.State, cause, e.WorkRequest.ID,
		e.WorkRequest.RequestID)
	return explanation{reason: ReasonWorkRequestFailed, text: text, key: doing + e.WorkRequest.Operation + cause}
}

func explainCloud(doing string, kind oci.BalancerKind, e *oci.Error) explanation {
	out := explanation{reason: ReasonCloudError}
	if e.Status == 0 {
		out.text, out.key = doing+": "+e.Error(), doing+e.Operation
		return out
	}
	out.text = fmt.Sprintf("%s: %s: %d %s: %s", doing, e.Operation, e.Status, e.Code, e.Message)
	out.key = out.text
	if e.RequestID != "" {
		out.text += fmt.Sprintf(" (opc-request-id %s)", e.RequestID)
	}
	if errors.Is(e, oci.ErrLimitExceeded) {
		out.reason = ReasonLimitExceeded
	}
	if hint := hintFor(kind, e); hint != "" {
		out.text += "; " + hint
	}
	return out
}

// explainRules explains what is about security rules.
func explainRules(doing string, err error) (explanation, bool) {
	var access *firewall.AccessError
	var limit *firewall.LimitError
	var conflict *firewall.ConflictError
	switch {
	case errors.As(err, &access):
		e := explanation{reason: ReasonRulesNotApplied, text: fmt.Sprintf("%s of %s: %v", doing, access.Target, access.Unwrap()), key: doing + access.Target.String()}
		var cloud *oci.Error
		if errors.As(err, &cloud) {
			e = explainCloud(doing+" of "+access.Target.String(), "", cloud)
			e.text, _, _ = strings.Cut(e.text, "; if it exists")
		}
		e.reason = ReasonRulesNotApplied
		e.text += "; if it exists, the policy lacks: " + access.Statement
		return e, true
	case errors.As(err, &limit):
		text := fmt.Sprintf("%s: %v: remove rules that are not needed, share source ranges, or use another list (loadBalancer.securityLists in the cloud configuration) or the annotation %s: %s", doing, limit, annotationRuleMode, RulesNSG)
		return explanation{reason: ReasonRulesNotApplied, text: text, key: text}, true
	case errors.As(err, &conflict):
		return explanation{reason: ReasonRulesNotApplied, text: fmt.Sprintf("%s: %v", doing, conflict), key: doing + conflict.Target.String()}, true
	}
	return explanation{}, false
}

// hintFor says what the user can do about an error of the cloud.
func hintFor(kind oci.BalancerKind, e *oci.Error) string {
	denied := e.Status == http.StatusNotFound || e.Status == http.StatusForbidden
	switch {
	case denied && strings.Contains(e.Operation, "SecurityList"):
		return "if it exists, the policy lacks: Allow <subject> to manage security-lists in compartment <compartment of the network>"
	case denied && e.Operation == "CreateNetworkSecurityGroup":
		return "the policy lacks: Allow <subject> to manage network-security-groups in compartment <compartment of the balancer>, and: Allow <subject> to manage vcns in compartment <compartment of the network>"
	case denied && strings.Contains(e.Operation, "NetworkSecurityGroup") && e.Service == oci.ServiceVirtualNetwork:
		return "if it exists, the policy lacks: Allow <subject> to manage network-security-groups in compartment <compartment of the group>"
	case denied && e.Service == oci.ServiceCompute:
		return "if it exists, the policy lacks: Allow <subject> to read instance-family in compartment <compartment of the instance>"
	case e.Status == http.StatusNotFound && e.Service == oci.ServiceVirtualNetwork:
		return "if it exists, the policy lacks: Allow <subject> to use virtual-network-family in compartment <compartment of the network>"
	case e.Status == http.StatusNotFound && kind == oci.KindNLB:
		return "if it exists, the policy lacks: Allow <subject> to manage network-load-balancers in compartment <compartment of the balancer>"
	case e.Status == http.StatusNotFound:
		return "if it exists, the policy lacks: Allow <subject> to manage load-balancers in compartment <compartment of the balancer>"
	case e.Code == "RelatedResourceNotAuthorizedOrNotFound":
		return "a subnet, network security group, reserved IP or tag namespace that the Service or the configuration names is missing, or the policy lacks: Allow <subject> to use virtual-network-family in compartment <compartment of the network>"
	case errors.Is(e, oci.ErrLimitExceeded):
		return "delete unused balancers or request a higher limit; the next try comes in some minutes"
	case errors.Is(e, oci.ErrUnauthorized):
		return "check the credentials in the cloud configuration"
	}
	return ""
}
