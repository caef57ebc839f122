// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
)

const base32Lower = "abcdefghijklmnopqrstuvwxyz234567"

// uniqueLength is the length of the last part of the OCIDs seen in the wild.
const uniqueLength = 60

// newOCID makes an identifier of this region: ocid1.<type>.<realm>.<region key>.<unique>. Tenancies, compartments and
// users have no region.
func (cl *cloud) newOCID(resourceType string) string {
	region := cl.options.RegionKey
	switch resourceType {
	case "tenancy", "compartment", "user":
		region = ""
	}
	var unique strings.Builder
	unique.Grow(uniqueLength)
	unique.WriteString("aaaaaaaa")
	writeRandom(&unique, cl.random, base32Lower, uniqueLength-8)
	return fmt.Sprintf("ocid1.%s.%s.%s.%s", resourceType, cl.options.Realm, region, unique.String())
}

func (cl *cloud) hex(n int, digits string) string {
	var b strings.Builder
	b.Grow(n)
	writeRandom(&b, cl.random, digits, n)
	return b.String()
}

const (
	lowerHex = "0123456789abcdef"
	upperHex = "0123456789ABCDEF"
)

// writeRandom writes n characters of an alphabet of at most 32 characters whose number is a power of two.
func writeRandom(b *strings.Builder, random *rand.Rand, alphabet string, n int) {
	mask := uint64(len(alphabet) - 1)
	var bits uint64
	for i := range n {
		if i%12 == 0 {
			bits = random.Uint64()
		}
		b.WriteByte(alphabet[bits&mask])
		bits >>= 5
	}
}

// requestID answers in the form that the services use: <client's id>/<32 hex>/<32 hex>.
func (cl *cloud) requestID(client string) string {
	return client + "/" + cl.hex(32, upperHex) + "/" + cl.hex(32, upperHex)
}

// sdkTime is the current time in the precision of the API, milliseconds in UTC.
func (cl *cloud) sdkTime() *common.SDKTime { return sdkTimeOf(cl.now) }

func sdkTimeOf(t time.Time) *common.SDKTime {
	return &common.SDKTime{Time: t.UTC().Truncate(time.Millisecond)}
}

func defaultDomains(region string) []string {
	domains := make([]string, 0, 3)
	for i := 1; i <= 3; i++ {
		name := strings.TrimSuffix(strings.ToUpper(region), "-1")
		domains = append(domains, fmt.Sprintf("Uocm:%s-AD-%d", name, i))
	}
	return domains
}

// value returns what a pointer of an SDK model points to, or the zero value.
func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
