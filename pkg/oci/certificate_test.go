// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package oci_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/oracle/oci-cloud-controller-manager/pkg/config"
	"github.com/oracle/oci-cloud-controller-manager/pkg/oci"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/pki"
)

// Certificate bundles come with the load balancer, without their keys; one in use cannot be deleted.
func TestCertificates(t *testing.T) {
	onBothKinds(t, ocisim.Options{Seed: 90}, func(b bench) {
		if b.Kind() != oci.KindLB {
			return
		}
		one, two := pki.New(t, "one"), pki.New(t, "two")
		lbs := b.cloud.(*oci.LoadBalancers)
		wanted := b.wanted()
		wanted.Certificates = map[string]oci.Certificate{"one": {Name: "one", Public: one.Certificate, CA: two.Certificate, Key: config.Secret(one.Key)}}
		l := wanted.Listeners["TCP-443"]
		l.SSL = &oci.SSL{CertificateName: "one"}
		wanted.Listeners["TCP-443"] = l
		work, _, err := b.Create(b.Context(), wanted, "token")
		if err != nil {
			t.Fatal(err)
		}
		done, err := b.Wait(b.Context(), work)
		if err != nil {
			t.Fatal(err)
		}
		wait := func(work string, err error) {
			t.Helper()
			if err == nil {
				_, err = b.Wait(b.Context(), work)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		live := b.read(done.ResourceID)
		if got := live.Certificates["one"]; got.Name != "one" || got.Public != one.Certificate || got.CA != two.Certificate || got.Key != "" {
			t.Errorf("read back: %+v", got)
		}
		wait(lbs.CreateCertificate(b.Context(), live.ID, oci.Certificate{Name: "two", Public: two.Certificate, Key: config.Secret(two.Key)}, ""))
		if _, err := lbs.CreateCertificate(b.Context(), live.ID, oci.Certificate{Name: "two", Public: two.Certificate, Key: config.Secret(two.Key)}, ""); !errors.Is(err, oci.ErrConflict) {
			t.Errorf("a name that is taken: %v", err)
		}
		if _, err := lbs.DeleteCertificate(b.Context(), live.ID, "one"); !errors.Is(err, oci.ErrConflict) {
			t.Errorf("deletion of a bundle in use: %v", err)
		}
		live = b.read(live.ID)
		l = live.Listeners["TCP-443"]
		l.SSL.CertificateName = "two"
		wait(b.UpdateListener(b.Context(), live.ID, l, live.ETag))
		wait(lbs.DeleteCertificate(b.Context(), live.ID, "one"))
		live = b.read(live.ID)
		if len(live.Certificates) != 1 || live.Certificates["two"].Public != two.Certificate || live.Listeners["TCP-443"].SSL.CertificateName != "two" {
			t.Errorf("bundles %v, listener %+v", live.Certificates, live.Listeners["TCP-443"].SSL)
		}
		if text := fmt.Sprintf("%v %+v %#v", wanted, wanted, wanted.Certificates); strings.Contains(text, strings.Split(one.Key, "\n")[1]) {
			t.Error("a balancer prints its key")
		}
	})
}
