// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import "strings"

// Reasons of events and of the status condition.
const (
	ReasonInvalidAnnotation    = "InvalidAnnotation"
	ReasonUnknownAnnotation    = "UnknownAnnotation"
	ReasonAnnotationIgnored    = "AnnotationIgnored"
	ReasonDeprecatedAnnotation = "DeprecatedAnnotation"
	ReasonUnsupportedService   = "UnsupportedService"
	ReasonNoSubnet             = "NoSubnet"
	ReasonPrivateSubnet        = "PrivateSubnet"
	ReasonInvalidAddress       = "InvalidAddress"
	ReasonInvalidSourceRange   = "InvalidSourceRange"
	ReasonSourceRangesIgnored  = "SourceRangesIgnored"
	ReasonRulesNotApplied      = "SecurityRulesNotApplied"
	ReasonRulesLeft            = "SecurityRulesLeft"
	ReasonRulesEdited          = "SecurityRulesEdited"
	ReasonNoSecurityList       = "NoSecurityList"
	ReasonNodeSubnetUnknown    = "NodeSubnetUnknown"
	ReasonImmutable            = "ImmutableSetting"
	ReasonNoUsableNodes        = "NoUsableNodes"
	ReasonNodesSkipped         = "NodesSkipped"
	ReasonNoEligibleNodes      = "NoEligibleNodes"
	ReasonNoNodeSelected       = "NoNodeSelected"
	ReasonKeptInUse            = "KeptInUse"
	ReasonNotOurs              = "BalancerNotOurs"
	ReasonSeveralBalancers     = "SeveralBalancers"
	ReasonNoMarks              = "BalancerWithoutMarks"
	ReasonCloudError           = "CloudError"
	ReasonLimitExceeded        = "LimitExceeded"
	ReasonWorkRequestFailed    = "WorkRequestFailed"
	ReasonBalancerFailed       = "BalancerFailed"
	ReasonDeleteProtected      = "DeleteProtected"
	ReasonNotConverging        = "NotConverging"
	ReasonIdentityUnusable     = "IdentityUnusable"
	ReasonInProgress           = "InProgress"
	ReasonSynced               = "Synced"
	ReasonTLSSecret            = "TLSSecretUnusable"
	ReasonCertificateTime      = "CertificateNotValid"
	ReasonAsFound              = "LeftAsFound"
)

// Problem is something that the user should know about a Service. A fatal one stops the sync before any write; the others
// do not.
type Problem struct {
	Reason  string
	Message string
	Fatal   bool
	// Late says that the sync goes on, but does not end well: not all that the Service asks for can be done.
	Late bool
	// Nodes says that the problem also concerns which nodes are backends, so that node changes must wait for its end.
	Nodes bool
}

// Problems is a list of them.
type Problems []Problem

func (p *Problems) fatal(reason, message string) {
	*p = append(*p, Problem{Reason: reason, Message: message, Fatal: true})
}

func (p *Problems) warn(reason, message string) {
	*p = append(*p, Problem{Reason: reason, Message: message})
}

// Fatal returns those that stop a sync.
func (p Problems) Fatal() Problems {
	return p.filter(func(x Problem) bool { return x.Fatal })
}

// Late returns those that a sync ends with.
func (p Problems) Late() Problems {
	return p.filter(func(x Problem) bool { return x.Late && !x.Fatal })
}

// Warnings returns those in spite of which a sync ends well.
func (p Problems) Warnings() Problems {
	return p.filter(func(x Problem) bool { return !x.Fatal && !x.Late })
}

func (p Problems) filter(keep func(Problem) bool) Problems {
	var out Problems
	for _, x := range p {
		if keep(x) {
			out = append(out, x)
		}
	}
	return out
}

// String joins the messages.
func (p Problems) String() string {
	messages := make([]string, len(p))
	for i, x := range p {
		messages[i] = x.Message
	}
	return strings.Join(messages, "; ")
}
