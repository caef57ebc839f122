// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim

import (
	"net/netip"
	"strings"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/filestorage"
)

// Documented limits of an export path, in bytes.
const (
	maxExportPath    = 1024
	maxExportElement = 255
)

// checkExportPath applies the documented rules of export paths.
func checkExportPath(path string) error {
	switch {
	case !strings.HasPrefix(path, "/"):
		return errInvalid("The export path '%s' must start with a slash.", path)
	case len(path) > maxExportPath:
		return errInvalid("The export path must not be longer than %d bytes.", maxExportPath)
	case path == "/":
		return nil
	case strings.HasSuffix(path, "/"):
		return errInvalid("The export path '%s' must not end with a slash.", path)
	}
	for element := range strings.SplitSeq(path[1:], "/") {
		switch {
		case element == "", element == ".", element == "..":
			return errInvalid("The export path '%s' must not contain the element '%s'.", path, element)
		case len(element) > maxExportElement:
			return errInvalid("An element of the export path must not be longer than %d bytes.", maxExportElement)
		}
	}
	return nil
}

// pathsCollide says whether one path contains all elements of the other.
func pathsCollide(a, b string) bool {
	a, b = strings.TrimSuffix(a, "/")+"/", strings.TrimSuffix(b, "/")+"/"
	return strings.HasPrefix(a, b) || strings.HasPrefix(b, a)
}

// anonymousID is what squashed users and groups become unless the options say otherwise.
const anonymousID = 65534

// defaultExportOptions are those of an export that was created without any. With IPv6 there are none, and nobody
// sees the export.
func defaultExportOptions(ipv6 bool) []filestorage.ClientOptions {
	if ipv6 {
		return []filestorage.ClientOptions{}
	}
	return []filestorage.ClientOptions{{
		Source: common.String("0.0.0.0/0"), RequirePrivilegedSourcePort: common.Bool(false),
		Access: filestorage.ClientOptionsAccessWrite, IdentitySquash: filestorage.ClientOptionsIdentitySquashNone,
		AnonymousUid: common.Int64(anonymousID), AnonymousGid: common.Int64(anonymousID), IsAnonymousAccessAllowed: common.Bool(false),
		AllowedAuth: []filestorage.ClientOptionsAllowedAuthEnum{filestorage.ClientOptionsAllowedAuthSys},
	}}
}

// completeOptions checks options and fills in what they leave out, which is stricter than the default options.
func completeOptions(list []filestorage.ClientOptions) ([]filestorage.ClientOptions, error) {
	out := make([]filestorage.ClientOptions, 0, len(list))
	for _, o := range list {
		if err := checkSource(value(o.Source)); err != nil {
			return nil, err
		}
		for _, id := range []*int64{o.AnonymousUid, o.AnonymousGid} {
			if value(id) < 0 || value(id) > 1<<32-1 {
				return nil, errInvalid("anonymousUid and anonymousGid must be between 0 and %d", int64(1<<32-1))
			}
		}
		o.RequirePrivilegedSourcePort = orDefault(o.RequirePrivilegedSourcePort, true)
		o.AnonymousUid, o.AnonymousGid = orDefault(o.AnonymousUid, anonymousID), orDefault(o.AnonymousGid, anonymousID)
		o.IsAnonymousAccessAllowed = orDefault(o.IsAnonymousAccessAllowed, false)
		if o.Access == "" {
			o.Access = filestorage.ClientOptionsAccessWrite
		}
		if o.IdentitySquash == "" {
			o.IdentitySquash = filestorage.ClientOptionsIdentitySquashRoot
		}
		if len(o.AllowedAuth) == 0 {
			o.AllowedAuth = []filestorage.ClientOptionsAllowedAuthEnum{filestorage.ClientOptionsAllowedAuthSys}
		}
		out = append(out, o)
	}
	return out, nil
}

// checkSource refuses what is neither an address nor a block of addresses.
func checkSource(source string) error {
	if _, err := netip.ParseAddr(source); err == nil {
		return nil
	}
	if _, err := netip.ParsePrefix(source); err == nil {
		return nil
	}
	return errInvalid("The source '%s' must be an IP address or a CIDR block.", source)
}
