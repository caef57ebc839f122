// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
)

// Environment holds the environment variables that are part of the contract. Variables that the SDK reads by itself
// are not among them.
type Environment struct {
	WorkloadIdentity WorkloadIdentityEnvironment
	// LoadBalancerPrefix begins the display names of load balancers. It ends with a hyphen unless it is empty.
	LoadBalancerPrefix string
	// EnableFlexCIDR switches on the controller that assigns pod CIDRs from VNIC prefixes.
	EnableFlexCIDR bool
	// DisableInstanceTagging switches off the controller that tags instances of OpenShift clusters.
	DisableInstanceTagging bool
	// OpenShiftNodeLabel is the "key" or "key=value" that tells OpenShift nodes.
	OpenShiftNodeLabel string
	// ClusterIPFamily is "IPv4", "IPv6", or both with a comma; see IPv6Only.
	ClusterIPFamily string
	// MetricsConfigFile is the file that the poster of OCI Monitoring metrics reads its metrics block from, besides the
	// cloud config.
	MetricsConfigFile string
	// BlockVolumeDriver is the name of the CSI driver for block volumes.
	BlockVolumeDriver string
	// LustreController says that the CSI controller shall serve Lustre.
	LustreController bool
	// LustreNode says that the CSI driver on nodes shall serve Lustre.
	LustreNode bool
	// ResourceAttribution gives volumes the tags of tags.common.
	ResourceAttribution bool
	// MetadataBaseURL is the address of the instance metadata service.
	MetadataBaseURL string

	values []variableValue // what was set, for Describe
}

// WorkloadIdentityEnvironment configures the token exchange behind useWorkloadIdentity.
type WorkloadIdentityEnvironment struct {
	DomainURL    string // URL of the identity domain
	ResourceType string
	ClientID     string
	ClientSecret Secret
	// UseInstancePrincipal authenticates the exchange as the instance instead of with ClientID and ClientSecret.
	UseInstancePrincipal bool
	TokenPath            string // file of the service-account token, read anew for each exchange
	RequestedTokenType   string
	SubjectTokenType     string
	RPSTExpiration       string // passed through
	PublicKey            string // passed through
}

// IPv6Only says whether the cluster is single-stack IPv6.
func (e Environment) IPv6Only() bool { return strings.EqualFold(e.ClusterIPFamily, "IPv6") }

// variable describes one environment variable. Each is optional unless the description says otherwise.
type variable struct {
	name, fallback, description string
	secret                      bool
	// set stores a value, or says what is wrong with it.
	set func(e *Environment, value string) (fault string)
}

type variableValue struct {
	name, value string
}

// environmentVariables is the table of variables, in the order of the reference.
func environmentVariables() []variable {
	const identity = "OCI_WORKLOAD_IDENTITY_"
	return []variable{
		{name: identity + "DOMAIN_URL", description: "URL of the identity domain. Required with `useWorkloadIdentity`.",
			set: textVariable(func(e *Environment) *string { return &e.WorkloadIdentity.DomainURL })},
		{name: identity + "RESOURCE_TYPE", description: "Resource type of the session token. Required with `useWorkloadIdentity`.",
			set: textVariable(func(e *Environment) *string { return &e.WorkloadIdentity.ResourceType })},
		{name: identity + "CLIENT_ID", description: "OAuth client that may exchange tokens. Required with `useWorkloadIdentity`, unless the instance authenticates.",
			set: textVariable(func(e *Environment) *string { return &e.WorkloadIdentity.ClientID })},
		{name: identity + "CLIENT_SECRET", secret: true, description: "Secret of that client. Required like the client.",
			set: func(e *Environment, value string) string { e.WorkloadIdentity.ClientSecret = Secret(value); return "" }},
		{name: identity + "USE_INSTANCE_PRINCIPAL_FOR_TOKEN_EXCHANGE", fallback: "false", description: "`true`: authenticate the exchange as the instance, without client and secret.",
			set: func(e *Environment, value string) string {
				e.WorkloadIdentity.UseInstancePrincipal = strings.EqualFold(value, "true")
				return ""
			}},
		{name: identity + "TOKEN_PATH", fallback: "/var/run/secrets/kubernetes.io/serviceaccount/token", description: "File of the service-account token to exchange.",
			set: textVariable(func(e *Environment) *string { return &e.WorkloadIdentity.TokenPath })},
		{name: identity + "REQUESTED_TOKEN_TYPE", fallback: "urn:oci:token-type:oci-rpst", description: "Type of token to ask for.",
			set: textVariable(func(e *Environment) *string { return &e.WorkloadIdentity.RequestedTokenType })},
		{name: identity + "SUBJECT_TOKEN_TYPE", fallback: "jwt", description: "Type of the token that is exchanged.",
			set: textVariable(func(e *Environment) *string { return &e.WorkloadIdentity.SubjectTokenType })},
		{name: identity + "RPST_EXP", description: "Life of the session token, passed to the identity domain as it is.",
			set: textVariable(func(e *Environment) *string { return &e.WorkloadIdentity.RPSTExpiration })},
		{name: identity + "PUBLIC_KEY", description: "Public key, passed to the identity domain as it is.",
			set: textVariable(func(e *Environment) *string { return &e.WorkloadIdentity.PublicKey })},
		{name: "LOAD_BALANCER_PREFIX", description: "Prefix of the display names of load balancers (not of network load balancers). A hyphen is added if it does not end with one. Must not change while there are load balancers.",
			set: func(e *Environment, value string) string {
				e.LoadBalancerPrefix = strings.TrimSuffix(value, "-") + "-"
				return ""
			}},
		{name: "ENABLE_FLEX_CIDR_CONTROLLER", fallback: "false", description: "Give nodes pod CIDRs from address blocks of their primary VNICs, as the metadata `flexcidr-primary-vnic` of their instances asks.",
			set: boolVariable(func(e *Environment) *bool { return &e.EnableFlexCIDR })},
		{name: "DISABLE_INSTANCE_TAGGING_CONTROLLER", fallback: "false", description: "Do not tag the instances of OpenShift clusters.",
			set: boolVariable(func(e *Environment) *bool { return &e.DisableInstanceTagging })},
		{name: "OPENSHIFT_NODE_LABEL_ID", fallback: "node.openshift.io/os_id=rhel", description: "Label (`key` or `key=value`) that tells OpenShift nodes, whose instances get the tags of `tags.common.defined`.",
			set: textVariable(func(e *Environment) *string { return &e.OpenShiftNodeLabel })},
		{name: "CLUSTER_IP_FAMILY", description: "`IPv6` means a single-stack IPv6 cluster.",
			set: textVariable(func(e *Environment) *string { return &e.ClusterIPFamily })},
		{name: "OCI_FLEXD_DRIVER_DIRECTORY", description: "**No effect in this release yet.** Directory whose `config.yaml` is the default of the next variable.",
			set: func(e *Environment, value string) string {
				e.MetricsConfigFile = filepath.Join(value, "config.yaml")
				return ""
			}},
		{name: "CONFIG_YAML_FILENAME", fallback: "/etc/oci/config.yaml", description: "Cloud config of the CSI controller driver. Where the default does not exist, `/etc/oci/cloud-provider.yaml` is read. That the poster of OCI Monitoring metrics reads its `metrics` block has **no effect in this release yet**.",
			set: textVariable(func(e *Environment) *string { return &e.MetricsConfigFile })},
		{name: "BLOCK_VOLUME_DRIVER_NAME", fallback: "blockvolume.csi.oraclecloud.com", description: "Name of the CSI driver for block volumes, for controller and nodes. Must not change while there are volumes.",
			set: textVariable(func(e *Environment) *string { return &e.BlockVolumeDriver })},
		{name: "LUSTRE_CSI_CONTROLLER_DRIVER_ENABLED", fallback: "false", description: "**No effect in this release yet.** Serve Lustre in the CSI controller driver.",
			set: func(e *Environment, value string) string {
				e.LustreController = strings.EqualFold(value, "true")
				return ""
			}},
		{name: "LUSTRE_DRIVER_ENABLED", fallback: "false", description: "**No effect in this release yet.** Serve Lustre in the CSI driver on nodes.",
			set: func(e *Environment, value string) string { e.LustreNode = strings.EqualFold(value, "true"); return "" }},
		{name: "CPO_ENABLE_RESOURCE_ATTRIBUTION", fallback: "false", description: "Give new volumes the tags of `tags.common` too.",
			set: boolVariable(func(e *Environment) *bool { return &e.ResourceAttribution })},
		{name: "OCI_METADATA_BASE_URL", fallback: DefaultMetadataURL, description: "Address of the instance metadata service.",
			set: func(e *Environment, value string) string {
				if u, err := url.Parse(value); err != nil || u.Host == "" {
					return fmt.Sprintf("not a URL: %s; %s is used", quote(value), DefaultMetadataURL)
				}
				e.MetadataBaseURL = value
				return ""
			}},
	}
}

func textVariable(at func(*Environment) *string) func(*Environment, string) string {
	return func(e *Environment, value string) string { *at(e) = value; return "" }
}

func boolVariable(at func(*Environment) *bool) func(*Environment, string) string {
	return func(e *Environment, value string) string {
		v, err := strconv.ParseBool(value)
		if err != nil {
			return fmt.Sprintf("want true or false, got %s; the default is used", quote(value))
		}
		*at(e) = v
		return ""
	}
}

// FromEnviron reads the environment through lookup, which is os.LookupEnv in a program. A variable set to nothing
// counts as not set. Values that cannot be used are reported and give way to the default.
func FromEnviron(lookup func(name string) (value string, ok bool)) (Environment, Report) {
	var (
		e      Environment
		report Report
	)
	for _, v := range environmentVariables() {
		if v.fallback != "" {
			v.set(&e, v.fallback)
		}
	}
	for _, v := range environmentVariables() {
		value, ok := lookup(v.name)
		if !ok || value == "" {
			continue
		}
		if message := v.set(&e, value); message != "" {
			report.Problems = append(report.Problems, Problem{File: "environment", Key: v.name, Message: message})
		}
		if v.secret {
			value = Secret(value).String()
		}
		e.values = append(e.values, variableValue{v.name, value})
	}
	return e, report
}

// LogFields returns the static fields that LOG_FIELD_<name>=<value> variables ask for, from a list such as os.Environ
// returns.
func LogFields(environ []string) map[string]string {
	fields := map[string]string{}
	for _, entry := range environ {
		if rest, ok := strings.CutPrefix(entry, "LOG_FIELD_"); ok {
			if name, value, _ := strings.Cut(rest, "="); name != "" {
				fields[name] = value
			}
		}
	}
	return fields
}

// problems reports what the token exchange lacks.
func (e WorkloadIdentityEnvironment) problems() []Problem {
	const identity = "OCI_WORKLOAD_IDENTITY_"
	lacking := func(name, why string) Problem {
		return Problem{Severity: Error, File: "environment", Key: identity + name, Message: "required with useWorkloadIdentity" + why}
	}
	var out []Problem
	if u, err := url.Parse(e.DomainURL); e.DomainURL == "" {
		out = append(out, lacking("DOMAIN_URL", ""))
	} else if err != nil || u.Host == "" {
		out = append(out, Problem{Severity: Error, File: "environment", Key: identity + "DOMAIN_URL", Message: "not a URL: " + quote(e.DomainURL)})
	}
	if e.ResourceType == "" {
		out = append(out, lacking("RESOURCE_TYPE", ""))
	}
	if !e.UseInstancePrincipal {
		const unless = ", unless " + identity + "USE_INSTANCE_PRINCIPAL_FOR_TOKEN_EXCHANGE is true"
		if e.ClientID == "" {
			out = append(out, lacking("CLIENT_ID", unless))
		}
		if e.ClientSecret == "" {
			out = append(out, lacking("CLIENT_SECRET", unless))
		}
	}
	return out
}
