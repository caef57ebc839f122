// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import "net/http"

// What is not established about balancers.
const (
	LoadBalancerBusy              Situation = "change of a load balancer while another one runs"
	LoadBalancerAddressChange     Situation = "change of the addresses of a load balancer"
	DeleteProtected               Situation = "delete of a protected balancer"
	BackendSetInUse               Situation = "delete of a backend set that a listener uses"
	CertificateInUse              Situation = "delete of a certificate in use"
	RuleSetInUse                  Situation = "delete of a rule set in use"
	PublicBalancerInPrivateSubnet Situation = "public balancer in a private subnet"
	BalancerSubnets               Situation = "wrong number or kind of subnets"
	ListenersShareAPort           Situation = "two listeners of a load balancer on one port"
	NLBListenersShareAPort        Situation = "two listeners of a network load balancer on one port with different protocols"
	ListenerNeedsTLS              Situation = "HTTP2 or GRPC listener without TLS"
	BadCertificate                Situation = "certificate that does not parse or fit its key"
	PartExists                    Situation = "create of a part of a balancer that exists"
	PartInUse                     Situation = "delete of a host name, routing policy, path route set or cipher suite in use"
	TooManyParts                  Situation = "too many parts of a load balancer"
	HostnameNeedsHTTP             Situation = "host name or routing on a listener that is not HTTP"
	HostnameTaken                 Situation = "two host names of a load balancer that are equal"
	ListenersShareAPortByHostname Situation = "two HTTP listeners on one port with different host names"
	ProtocolsOfAPortDiffer        Situation = "two TLS listeners on one port with different TLS protocols"
	TwoRoutings                   Situation = "listener with a routing policy and a path route set"
	BadRoutingCondition           Situation = "routing rule whose condition does not parse"
	CertificateMissing            Situation = "TLS listener without a certificate"
	CertificateTwice              Situation = "TLS settings that name a certificate and give a certificate id"
	VerifyNeedsAuthority          Situation = "TLS settings that verify peers and trust nobody"
	CiphersUnfit                  Situation = "cipher suite without a cipher for the TLS protocols"
	SameCompartment               Situation = "move of a balancer to the compartment that it is in"
)

// defaultBalancerLimits are the numbers of named parts of a load balancer, by the names that they have in paths, and
// "pathRoutes", "routingRules" and "rules" within one of them. The service documents that there are limits; these
// are from memory.
func defaultBalancerLimits() map[string]int {
	return map[string]int{
		"hostnames": 16, "pathRouteSets": 20, "pathRoutes": 20, "routingPolicies": 20, "routingRules": 100,
		"sslCipherSuites": 20, "certificates": 50, "ruleSets": 20, "rules": 50,
	}
}

func balancerRulings() map[Situation]Ruling {
	return map[Situation]Ruling{
		LoadBalancerBusy: {
			Allow: true, Status: http.StatusConflict, Code: "IncorrectState",
			Message: "Load balancer %s has a work request in progress.",
			Reason:  "users' logs show that changes queue; no report of a refusal was found",
		},
		LoadBalancerAddressChange: {
			Status: http.StatusBadRequest, Code: "InvalidParameter", Message: "The addresses of load balancer %s cannot be changed.",
			Reason: "whether ipMode and reservedIps can be changed at all is not documented; refusing is the harsher choice",
		},
		DeleteProtected: {
			Status: http.StatusConflict, Code: "Conflict", Message: "Load balancer %s has delete protection enabled.",
			Reason: "the flag is documented, its error is not",
		},
		BackendSetInUse: {
			Status: http.StatusBadRequest, Code: "InvalidParameter", Message: "Backend set '%s' is used by %s '%s' and cannot be deleted.",
			Reason: "the docs require removing it from listeners first; code and message were not found",
		},
		CertificateInUse: {
			Status: http.StatusConflict, Code: "Conflict", Message: "Certificate '%s' is attached to one or more listeners/backendSets",
			Reason: "seen in a user's log",
		},
		RuleSetInUse: {
			Status: http.StatusConflict, Code: "Conflict", Message: "Rule set '%s' is attached to one or more listeners",
			Reason: "as for certificates",
		},
		PublicBalancerInPrivateSubnet: {
			Status: http.StatusBadRequest, Code: "InvalidParameter", Message: "Subnet %s is private: a public load balancer needs a public subnet.",
			Reason: "documented as impossible, code from memory",
		},
		BalancerSubnets: {
			Status: http.StatusBadRequest, Code: "InvalidParameter", Message: "%s",
			Reason: "the combinations are documented, the code is not",
		},
		ListenersShareAPort: {
			Status: http.StatusBadRequest, Code: "InvalidParameter", Message: "Listeners '%s' and '%s' refer to the same VIP and port %d.",
			Reason: "users report a 400 about a VIP that is referred to twice",
		},
		NLBListenersShareAPort: {
			Status: http.StatusBadRequest, Code: "InvalidParameter", Message: "Listeners '%s' and '%s' use the same port %d.",
			Reason: "it is not established that the API takes one port twice; refusing is the harsher choice",
		},
		ListenerNeedsTLS: {
			Status: http.StatusBadRequest, Code: "InvalidParameter", Message: "Listener '%s' with protocol %s needs an SSL configuration.",
			Reason: "documented for HTTP2; the code is not",
		},
		BadCertificate: {
			Status: http.StatusBadRequest, Code: "InvalidParameter", Message: "Certificate '%s' is not valid: %s",
			Reason: "validation of a parameter",
		},
		PartExists: {
			Status: http.StatusConflict, Code: "NotAuthorizedOrResourceAlreadyExists", Message: "%s '%s' already exists.",
			Reason: "the documented code for creates of what exists",
		},
		PartInUse: {
			Status: http.StatusConflict, Code: "Conflict", Message: "%s '%s' is attached to one or more listeners",
			Reason: "as for certificates",
		},
		TooManyParts: {
			Status: http.StatusBadRequest, Code: "LimitExceeded", Message: "A load balancer has at most %d %s.",
			Reason: "the documented code for limits; the numbers stand in BalancerLimits",
		},
		HostnameNeedsHTTP: {
			Allow: true, Status: http.StatusBadRequest, Code: "InvalidParameter", Message: "Listener '%s' with protocol %s cannot have %s.",
			Reason: "they are documented as working on HTTP requests; that the service refuses others is not",
		},
		HostnameTaken: {
			Status: http.StatusConflict, Code: "Conflict", Message: "Hostname '%s' has the same value as '%s'.",
			Reason: "a request could not be told to belong to one of them; whether the service refuses it is not documented",
		},
		ListenersShareAPortByHostname: {
			Allow: true, Status: http.StatusBadRequest, Code: "InvalidParameter",
			Message: "Listeners '%s' and '%s' refer to the same VIP and port %d.",
			Reason:  "telling listeners of one port apart is what host names are documented for",
		},
		ProtocolsOfAPortDiffer: {
			Status: http.StatusBadRequest, Code: "InvalidParameter",
			Message: "Listeners '%s' and '%s' on port %d must use the same set of SSL protocols.",
			Reason:  "documented as a must without its error",
		},
		TwoRoutings: {
			Status: http.StatusBadRequest, Code: "InvalidParameter",
			Message: "Listener '%s' has a routing policy and a path route set: only one of them is allowed.",
			Reason:  "the older one is documented as replaced by the other; refusing both is the harsher choice",
		},
		BadRoutingCondition: {
			Status: http.StatusBadRequest, Code: "InvalidParameter", Message: "The condition of routing rule '%s' is not valid: %s.",
			Reason: "validation of a parameter; only the outline of the language is checked",
		},
		CertificateMissing: {
			Status: http.StatusBadRequest, Code: "InvalidParameter", Message: "Listener '%s' has an SSL configuration without a certificate.",
			Reason: "a server cannot do TLS without one; the code is not documented",
		},
		CertificateTwice: {
			Status: http.StatusBadRequest, Code: "InvalidParameter",
			Message: "Only one of certificateName and certificateIds is allowed.",
			Reason:  "documented as alternatives; the code is not",
		},
		VerifyNeedsAuthority: {
			Status: http.StatusBadRequest, Code: "InvalidParameter",
			Message: "verifyPeerCertificate needs a CA certificate or trustedCertificateAuthorityIds.",
			Reason:  "there would be nothing to verify with; the service's answer is not documented",
		},
		CiphersUnfit: {
			Status: http.StatusBadRequest, Code: "InvalidParameter",
			Message: "Cipher suite '%s' has no cipher for the protocols %s.",
			Reason:  "documented as the caller's duty; whether the service checks it is not, and refusing is the harsher choice",
		},
		SameCompartment: {
			Status: http.StatusConflict, Code: "Conflict", Message: "%s is in the compartment %s already.",
			Reason: "not documented; a move that moves nothing is refused by most services",
		},
	}
}
