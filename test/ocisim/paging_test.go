// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package ocisim_test

import (
	"net/http"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
)

func TestPages(t *testing.T) {
	f := newFixture(t, ocisim.Options{PageSize: 2})
	f.region.AddInstance(ocisim.Instance{Name: "more-%d", Count: 4})
	uri := api + "/instances?compartmentId=" + f.compartment

	first := f.get(uri + "&limit=1000").want(http.StatusOK)
	if n := len(first.array()); n != 2 {
		t.Errorf("%d items on a page that is capped at 2", n)
	}
	if n := len(f.get(uri + "&limit=1").want(http.StatusOK).array()); n != 1 {
		t.Errorf("%d items with limit=1", n)
	}
	list := f.all(uri)
	if len(list) != 5 || len(slices.Compact(slices.Sorted(slices.Values(ids(list))))) != 5 {
		t.Errorf("pages brought %v", ids(list))
	}
	if n := len(f.all(api + "/instances?compartmentId=" + f.compartment + "&displayName=more-2")); n != 1 {
		t.Errorf("%d instances named more-2", n)
	}
	if n := len(f.all(api + "/instances?compartmentId=" + f.compartment + "&lifecycleState=STOPPED")); n != 0 {
		t.Errorf("%d stopped instances", n)
	}
}

func TestPageTokens(t *testing.T) {
	f := newFixture(t, ocisim.Options{PageSize: 2})
	f.region.AddInstance(ocisim.Instance{Name: "more-%d", Count: 4})
	uri := api + "/instances?compartmentId=" + f.compartment
	token := f.get(uri).want(http.StatusOK).header.Get("opc-next-page")

	f.get(uri + "&page=" + token + "&limit=1").want(http.StatusOK) // another limit is fine
	flipped := []byte(token)
	flipped[len(flipped)/2] ^= 1
	for name, bad := range map[string]string{
		"made up":       uri + "&page=2",
		"changed":       uri + "&page=" + string(flipped),
		"other filter":  uri + "&displayName=more-1&page=" + token,
		"other list":    api + "/vnicAttachments?compartmentId=" + f.compartment + "&page=" + token,
		"other scope":   api + "/instances?compartmentId=" + f.region.Options().Tenancy + "&page=" + token,
		"other sorting": uri + "&sortBy=DISPLAYNAME&page=" + token,
	} {
		t.Run(name, func(t *testing.T) {
			f.get(bad).wantError(http.StatusBadRequest, "PaginationTokenFormat")
		})
	}
	f.get(uri+"&limit=0").wantError(http.StatusBadRequest, "InvalidParameter")
	f.get(uri+"&limit=x").wantError(http.StatusBadRequest, "InvalidParameter")
	f.get(uri+"&sortBy=SIZE").wantError(http.StatusBadRequest, "InvalidParameter")

	f.region.Advance(61 * time.Minute)
	f.get(uri+"&page="+token).wantError(http.StatusBadRequest, "PaginationTokenExpired")
}

func TestLastPageHasNoToken(t *testing.T) {
	f := newFixture(t, ocisim.Options{PageSize: 2})
	f.region.AddInstance(ocisim.Instance{Name: "second"})
	r := f.get(api + "/instances?compartmentId=" + f.compartment).want(http.StatusOK)
	if values, present := r.header["Opc-Next-Page"]; present || len(r.array()) != 2 {
		t.Errorf("a full last page of %d items has the token %q", len(r.array()), values)
	}
	empty := f.get(api + "/instances?compartmentId=" + f.region.Options().Tenancy).want(http.StatusOK)
	if string(empty.body) != "[]" {
		t.Errorf("an empty list is %s", empty.body)
	}
}

func TestSorting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		region := ocisim.New(ocisim.Options{PageSize: 2})
		for _, name := range []string{"b", "d", "a", "c", "b"} {
			region.AddInstance(ocisim.Instance{Name: name})
			time.Sleep(time.Second)
		}
		c := newClient(t, region)
		for query, want := range map[string][]string{
			"":                                   {"b", "d", "a", "c", "b"},
			"&sortBy=TIMECREATED":                {"b", "c", "a", "d", "b"},
			"&sortBy=TIMECREATED&sortOrder=ASC":  {"b", "d", "a", "c", "b"},
			"&sortBy=DISPLAYNAME":                {"a", "b", "b", "c", "d"},
			"&sortBy=DISPLAYNAME&sortOrder=DESC": {"d", "c", "b", "b", "a"},
		} {
			var got []string
			for _, o := range c.all(api + "/instances?compartmentId=" + region.Options().Tenancy + query) {
				got = append(got, str(o, "displayName"))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%q (-want +got):\n%s", query, diff)
			}
		}
	})
}

// TestPagesCoverTheListOnce changes the list between any two pages: what is there from start to end is listed exactly
// once, nothing is listed twice, whatever the page size, the order and the length of the pages.
func TestPagesCoverTheListOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		region := ocisim.New(ocisim.Options{
			Seed:       rapid.Uint64().Draw(rt, "seed"),
			PageSize:   rapid.IntRange(1, 5).Draw(rt, "page size"),
			ShortPages: rapid.SampledFrom([]float64{0, 0.5}).Draw(rt, "short pages"),
		})
		c := newClient(t, region)
		query := rapid.SampledFrom([]string{"", "&sortBy=DISPLAYNAME", "&sortBy=TIMECREATED", "&sortBy=DISPLAYNAME&sortOrder=DESC"}).Draw(rt, "order")
		uri := api + "/instances?compartmentId=" + region.Options().Tenancy + query
		steady := map[string]int{}
		var passing []string
		names := rapid.StringMatching(`[a-d]{1,2}`)
		for range rapid.IntRange(0, 12).Draw(rt, "instances") {
			steady[region.AddInstance(ocisim.Instance{Name: names.Draw(rt, "name")})] = 0
		}
		page := ""
		for turn := 0; ; turn++ {
			if turn > 1000 {
				rt.Fatal("the list does not end")
			}
			r := c.get(uri + page).want(http.StatusOK)
			for _, o := range r.array() {
				id := str(o, "id")
				if steady[id]++; steady[id] > 1 {
					rt.Fatalf("%s (%s) is listed twice", str(o, "displayName"), id)
				}
			}
			next := r.header.Get("opc-next-page")
			if next == "" {
				break
			}
			page = "&page=" + next
			switch rapid.IntRange(0, 3).Draw(rt, "meanwhile") {
			case 0:
				if turn < 20 {
					id := region.AddInstance(ocisim.Instance{Name: names.Draw(rt, "new name")})
					passing = append(passing, id)
				}
			case 1:
				if len(passing) > 0 {
					if err := region.Foreign().Delete(passing[0]); err != nil {
						rt.Fatal(err)
					}
					passing = passing[1:]
				}
			}
		}
		for _, v := range region.Instances() {
			if n, known := steady[*v.Id]; known && n != 1 {
				rt.Fatalf("%s is listed %d times", *v.DisplayName, n)
			}
		}
	})
}

// TestDeletionBehindTheCursor removes the very item that a page token points to.
func TestDeletionBehindTheCursor(t *testing.T) {
	region := ocisim.New(ocisim.Options{PageSize: 1})
	c := newClient(t, region)
	var want []string
	for i := range 4 {
		want = append(want, region.AddInstance(ocisim.Instance{Name: strconv.Itoa(i)}))
	}
	uri := api + "/instances?compartmentId=" + region.Options().Tenancy
	r := c.get(uri).want(http.StatusOK)
	got := ids(r.array())
	if err := region.Foreign().Delete(got[0]); err != nil {
		t.Fatal(err)
	}
	got = append(got, ids(c.rest(uri, r.header.Get("opc-next-page")))...)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the pages (-want +got):\n%s", diff)
	}
}
