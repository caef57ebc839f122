// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/oracle/oci-go-sdk/v65/certificates"
	"github.com/oracle/oci-go-sdk/v65/certificatesmanagement"
	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"
	"github.com/oracle/oci-go-sdk/v65/filestorage"
	"github.com/oracle/oci-go-sdk/v65/identity"
	"github.com/oracle/oci-go-sdk/v65/limits"
	"github.com/oracle/oci-go-sdk/v65/loadbalancer"
	"github.com/oracle/oci-go-sdk/v65/lustrefilestorage"
	"github.com/oracle/oci-go-sdk/v65/monitoring"
	"github.com/oracle/oci-go-sdk/v65/networkloadbalancer"
	"github.com/oracle/oci-go-sdk/v65/workrequests"
	"pgregory.net/rapid"
)

// sdkClients are the SDK's clients of the services: from their request types the property tests know the bodies. A new
// service joins the tests by a line here, and by lines in the tables below where its fields need special values.
var sdkClients = map[string]any{
	ServiceIdentity:               identity.IdentityClient{},
	ServiceCompute:                core.ComputeClient{},
	ServiceVirtualNetwork:         core.VirtualNetworkClient{},
	ServiceLoadBalancer:           loadbalancer.LoadBalancerClient{},
	ServiceBlockStorage:           core.BlockstorageClient{},
	ServiceWorkRequests:           workrequests.WorkRequestClient{},
	ServiceFileStorage:            filestorage.FileStorageClient{},
	ServiceLustre:                 lustrefilestorage.LustreFileStorageClient{},
	ServiceCertificatesManagement: certificatesmanagement.CertificatesManagementClient{},
	ServiceCertificates:           certificates.CertificatesClient{},
	ServiceMonitoring:             monitoring.MonitoringClient{},
	ServiceLimits:                 limits.LimitsClient{},
	ServiceNetworkLoadBalancer:    networkloadbalancer.NetworkLoadBalancerClient{},
}

// variants are the types that stand for an interface of the SDK in a body.
var variants = map[reflect.Type][]any{
	reflect.TypeFor[loadbalancer.Rule](): {
		loadbalancer.AddHttpRequestHeaderRule{}, loadbalancer.RemoveHttpResponseHeaderRule{}, loadbalancer.HttpHeaderRule{},
	},
	reflect.TypeFor[core.VolumeSourceDetails](): {
		core.VolumeSourceFromVolumeDetails{}, core.VolumeSourceFromVolumeBackupDetails{},
	},
	reflect.TypeFor[core.VolumeGroupSourceDetails](): {core.VolumeGroupSourceFromVolumesDetails{}},
	reflect.TypeFor[core.InstanceSourceDetails]():    {core.InstanceSourceViaImageDetails{}},
	reflect.TypeFor[core.BootVolumeSourceDetails]():  {core.BootVolumeSourceFromBootVolumeDetails{}},
	reflect.TypeFor[core.AttachVolumeDetails](): {
		core.AttachIScsiVolumeDetails{}, core.AttachParavirtualizedVolumeDetails{}, core.AttachServiceDeterminedVolumeDetails{},
	},
	reflect.TypeFor[core.AutotunePolicy](): {core.DetachedVolumeAutotunePolicy{}, core.PerformanceBasedAutotunePolicy{}},
}

// words are values of string fields, by "field", "service.field" or "Type.field". Other strings are names of parts.
var words = map[string][]string{
	"cidrBlock":                  {"10.0.40.0/24"},
	"destination":                {"10.0.0.0/16", "0.0.0.0/0"},
	"source":                     {"10.0.0.0/16", "192.168.1.0/24"},
	"ipAddress":                  {"10.0.10.77", "10.0.10.78", "10.0.20.9", "192.168.0.1"},
	"loadbalancer.policy":        {"ROUND_ROBIN", "LEAST_CONNECTIONS", "IP_HASH"},
	"networkloadbalancer.policy": {"FIVE_TUPLE", "TWO_TUPLE"},
	"loadbalancer.protocol":      {"TCP", "HTTP"},
	"virtualnetwork.protocol":    {"6", "17", "all"},
	"shapeName":                  {"flexible", "100Mbps"},
	"urlPath":                    {"/healthz"},
	"scope":                      {"REGION", "AVAILABILITY_DOMAIN"},
	"lifetime":                   {"RESERVED", "EPHEMERAL"},
	"action":                     {"START", "STOP", "SOFTSTOP", "RESET"},
	"hostnameLabel":              {"host-a", "host-b", "Not valid"},
	"ipv6SubnetCidr":             {"2001:db8:0:1::/64"},
	"subnetIpv6Cidr":             {"2001:db8:0:1::/64"},
	"path":                       {"/", "/a", "/a/b", "/b"},
	"device":                     {"/dev/oracleoci/oraclevdb", "/dev/oracleoci/oraclevdc", "/dev/sdb"},
	"shape":                      {"VM.Standard.E5.Flex"},
	"passphrase":                 {""},
	"header":                     {"x-test"},
	"value":                      {"1"},
	"responseBodyRegex":          {".*"},
}

// numbers are values of numeric fields.
var numbers = map[string][]int{
	"capacityInGBs":          {31200, 41600},
	"sizeInGBs":              {50, 60, 100, 20},
	"vpusPerGB":              {0, 10, 20, 30},
	"maxVpusPerGB":           {10, 120},
	"port":                   {80, 443, 8080, 30123},
	"min":                    {80, 443},
	"max":                    {443, 8080},
	"minimumBandwidthInMbps": {10, 100},
	"maximumBandwidthInMbps": {100, 8000},
	"maxConnections":         {256},
	"backendMaxConnections":  {0, 256},
	"intervalInMillis":       {10000},
	"timeoutInMillis":        {3000},
	"retries":                {3},
	"returnCode":             {200},
	"limit":                  {1, 2, 3, 1000},
}

// likeOCIDs name the kind of OCID that a field takes where its name does not say it.
var likeOCIDs = map[string]string{
	"ReservedIp.id":                            "publicip",
	"VolumeSourceFromVolumeDetails.id":         "volume",
	"VolumeSourceFromVolumeBackupDetails.id":   "volumebackup",
	"BootVolumeSourceFromBootVolumeDetails.id": "bootvolume",
	"nsgIds": "networksecuritygroup",
	"rtId":   "routetable",
}

// neverSet are fields that are left out: features that the simulator refuses as a whole, and secrets that must fit.
var neverSet = map[string]bool{
	"vlanId": true, "vlanIds": true, "publicIpPoolId": true, "sslConfiguration": true, "securityAttributes": true,
	"certificates": true, "definedTags": true, "privateKey": true, "publicCertificate": true, "caCertificate": true,
	"icmpOptions": true, "tcpOptions": true, "preemptibleInstanceConfig": true, "capacityReservationId": true,
	"dedicatedVmHostId": true, "computeClusterId": true, "launchVolumeAttachments": true, "udpOptions": true, "ipMode": true, "cidrPrefixLength": true, "ipv4SubnetCidrAtCreation": true, "routeTableId": true,
}

// usuallySet are optional fields without which most requests are refused.
var usuallySet = map[string]bool{"shapeDetails": true, "vnicId": true, "securityRules": true, "sourceDetails": true}

// partNames are the names of listeners, backend sets and the like: few, so that they meet.
var partNames = []string{"a", "b", "c"}

// draw is what a generator of requests draws from: even chances, and one number for rapid to keep and to shrink.
type draw struct {
	*rand.Rand

	machine *machine
	service string
}

func (m *machine) draw(t *rapid.T) draw {
	if m.choices != nil {
		return draw{Rand: m.choices, machine: m}
	}
	return draw{Rand: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "choices"), 1)), machine: m}
}

// chance is true in so many of a hundred cases.
func (d draw) chance(percent int) bool { return d.IntN(100) < percent }

func one[T any](d draw, list []T) T { return list[d.IntN(len(list))] }

// body makes a request body for an operation: the SDK's model with its mandatory fields and some of the others, now
// and then damaged.
func (d draw) body(o *Operation) []byte {
	t := bodyType(o)
	if t == nil {
		return nil
	}
	v := reflect.New(t).Elem()
	d.service = o.Service
	d.fill(v, "", 0)
	e := newEncoder()
	raw := e.encode(v.Interface())
	if d.chance(6) {
		return d.damage(raw)
	}
	return raw
}

// bodyType is the model that the SDK sends for an operation; nil for none.
func bodyType(o *Operation) reflect.Type {
	client, ok := sdkClients[o.Service]
	if !ok {
		return nil
	}
	method, ok := reflect.TypeOf(client).MethodByName(o.Name)
	if !ok {
		return nil
	}
	request := method.Type.In(2)
	for i := range request.NumField() {
		if f := request.Field(i); f.Tag.Get("contributesTo") == "body" {
			return f.Type
		}
	}
	return nil
}

func (d draw) damage(raw []byte) []byte {
	var fields map[string]any
	if json.Unmarshal(raw, &fields) != nil || len(fields) == 0 || d.chance(20) {
		return raw[:len(raw)/2]
	}
	name := one(d, sortedKeys(fields))
	switch d.IntN(3) {
	case 0:
		delete(fields, name)
	case 1:
		fields[name] = []any{map[string]any{"x": 1}}
	default:
		fields[name] = "ocid1.nothing.oc1.iad.nowhere"
	}
	out, err := json.Marshal(fields)
	if err != nil {
		panic(err)
	}
	return out
}

const deepest = 4

func (d draw) fill(v reflect.Value, name string, depth int) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.fill(v.Elem(), name, depth)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[common.SDKTime]() {
			v.Set(reflect.ValueOf(*d.machine.region.cloud.sdkTime()))
			return
		}
		d.fillStruct(v, depth)
	case reflect.Interface:
		d.fillVariant(v, depth)
	case reflect.Slice:
		n := 1 + d.IntN(2)
		if d.chance(15) {
			n = 0
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			d.fill(v.Index(i), name, depth+1)
		}
	case reflect.Map:
		d.fillMap(v, name, depth)
	default:
		d.scalar(v, name)
	}
}

func (d draw) fillMap(v reflect.Value, name string, depth int) {
	v.Set(reflect.MakeMap(v.Type()))
	for range d.IntN(3) {
		element := reflect.New(v.Type().Elem()).Elem()
		d.fill(element, name, depth+1)
		v.SetMapIndex(reflect.ValueOf(one(d, partNames)).Convert(v.Type().Key()), element)
	}
}

func (d draw) fillVariant(v reflect.Value, depth int) {
	choices := variants[v.Type()]
	if len(choices) == 0 {
		return
	}
	chosen := reflect.New(reflect.TypeOf(one(d, choices))).Elem()
	d.fillStruct(chosen, depth)
	v.Set(chosen)
}

func (d draw) fillStruct(v reflect.Value, depth int) {
	t := v.Type()
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name == "" || neverSet[name] {
			continue
		}
		wanted := 35
		switch {
		case t.Field(i).Tag.Get("mandatory") == "true", usuallySet[name]:
			wanted = 99
		case depth >= deepest:
			wanted = 0
		}
		if !d.chance(wanted) {
			continue
		}
		field := v.Field(i)
		if field.Kind() == reflect.String {
			d.enum(v, i)
			continue
		}
		d.fill(field, t.Name()+"."+name, depth+1)
	}
}

// enum sets a field of an enumerated type. The SDK names the values only in the error about a wrong one.
func (d draw) enum(parent reflect.Value, field int) {
	trial := reflect.New(parent.Type()).Elem()
	trial.Field(field).SetString("?")
	model, ok := trial.Interface().(enumerated)
	if !ok {
		return
	}
	_, err := model.ValidateEnumValue()
	if err == nil {
		return
	}
	_, list, _ := strings.Cut(err.Error(), "Supported values are: ")
	list, _, _ = strings.Cut(list, ".")
	parent.Field(field).SetString(one(d, strings.Split(list, ",")))
}

func (d draw) scalar(v reflect.Value, full string) {
	_, name, _ := strings.Cut(full, ".")
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(d.chance(50))
	case reflect.String:
		v.SetString(d.word(full, name))
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(d.number(full, name)))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(d.number(full, name)))
	}
}

func (d draw) number(full, name string) int {
	for _, key := range [...]string{full, name} {
		if list, ok := numbers[key]; ok {
			return one(d, list)
		}
	}
	return 1 + d.IntN(3)
}

// word is a value for a string field or a parameter.
func (d draw) word(full, name string) string {
	if full == "GetPublicIpByIpAddressDetails.ipAddress" {
		return d.publicAddress()
	}
	for _, key := range [...]string{full, d.service + "." + name, name} {
		if like, ok := likeOCIDs[key]; ok {
			return d.ocid(like)
		}
		if list, ok := words[key]; ok {
			return one(d, list)
		}
	}
	switch lower := strings.ToLower(name); {
	case name == "securityRuleIds", full == "UpdateSecurityRuleDetails.id":
		return d.ruleID()
	case lower == "compartmentid":
		return one(d, d.machine.compartments)
	case lower == "availabilitydomain":
		return one(d, d.machine.region.options.AvailabilityDomains)
	case strings.HasSuffix(name, "Ids"):
		return d.ocid(strings.TrimSuffix(lower, "ids"))
	case strings.HasSuffix(name, "Id"):
		return d.ocid(strings.TrimSuffix(lower, "id"))
	default:
		return one(d, partNames)
	}
}

// ocid is the identifier of a resource whose type ends the word, now and then of another or of none.
func (d draw) ocid(like string) string {
	if d.chance(3) {
		return "ocid1." + like + ".oc1.iad.unknown"
	}
	if list := d.machine.idsLike(like); len(list) > 0 {
		return one(d, list)
	}
	return "ocid1." + like + ".oc1.iad.none"
}

// ruleID is the identifier of a rule of some security group.
func (d draw) ruleID() string {
	ids := []string{"ABCDEF"}
	for g := range groupRules.under(d.machine.region.cloud, "") {
		ids = append(ids, value(g.rule.Id))
	}
	return one(d, ids)
}

// publicAddress is the address of some public IP.
func (d draw) publicAddress() string {
	addresses := []string{"203.0.113.1"}
	for ip := range publicIPs.under(d.machine.region.cloud, "") {
		addresses = append(addresses, value(ip.IpAddress))
	}
	return one(d, addresses)
}

// idsLike are the identifiers of the type that a word names: that type, else the longest that the word ends with
// ("sourceVolume"), else all that end with the word ("workRequest").
func (m *machine) idsLike(word string) []string {
	types := map[string][]string{}
	for key, list := range m.region.cloud.store.lists {
		if key.key != "" || key.kind == groupRules.kindInfo {
			continue
		}
		for _, res := range list.items {
			if parts := strings.Split(res.id, "."); len(parts) > 1 {
				types[parts[1]] = append(types[parts[1]], res.id)
			}
		}
	}
	best := ""
	var others []string
	for _, name := range sortedKeys(types) {
		if strings.HasSuffix(word, name) && len(name) > len(best) {
			best = name
		}
		if strings.HasSuffix(name, word) {
			others = append(others, types[name]...)
		}
	}
	if best != "" {
		return types[best]
	}
	return others
}

// TestPropertiesKnowEveryOperation: the SDK has every operation of the table, so that the property tests can fill its
// body.
func TestPropertiesKnowEveryOperation(t *testing.T) {
	region := New(Options{})
	for _, o := range region.Operations() {
		client, ok := sdkClients[o.Service]
		if !ok {
			t.Errorf("service %s is not in sdkClients", o.Service)
			continue
		}
		if _, ok := reflect.TypeOf(client).MethodByName(o.Name); !ok {
			t.Errorf("the SDK's client has no %s", o.FullName())
		}
	}
}
