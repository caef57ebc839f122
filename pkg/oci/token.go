// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
)

// retryTokenLength leaves room below the API's limit of 64 characters; a SHA-256 in base32 has just 52.
const retryTokenLength = 52

// RetryToken returns the opc-retry-token of a create. It is the same in every process that wants the same thing for the
// same owner, so a create whose answer was lost is not done twice.
//
// body is the request without its tags, since tags may differ between two tries for the same resource. It must encode to
// JSON; maps are encoded with sorted keys, hence equal bodies give equal tokens.
func RetryToken(operation, clusterID, owner string, body any) string {
	hash := sha256.New()
	// Each part is preceded by its length, so that no two different lists of parts give the same input.
	for _, part := range []string{operation, clusterID, owner} {
		fmt.Fprintf(hash, "%d:%s", len(part), part)
	}
	if err := json.NewEncoder(hash).Encode(body); err != nil {
		// Bodies are plain structs of ours; one that cannot be encoded is a programming error that any test meets.
		panic(fmt.Sprintf("oci: body of %s has no JSON form: %v", operation, err))
	}
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(hash.Sum(nil))[:retryTokenLength]
}
