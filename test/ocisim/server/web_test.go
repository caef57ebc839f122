// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"strings"
	"testing"
)

func TestIndexDependsOnWhoAsks(t *testing.T) {
	s := start(t, Options{})
	c := &http.Client{}
	for accept, html := range map[string]bool{
		"":                                false,
		"*/*":                             false,
		"application/json":                false,
		"text/html,application/xml;q=0.9": true,
	} {
		req := request(t, http.MethodGet, s.AdminURL()+"/", nil)
		req.Header.Set("Accept", accept)
		response, body := do(t, c, req)
		if html {
			want(t, response, body, http.StatusOK, "<!doctype html>")
		} else {
			want(t, response, body, http.StatusOK, "POST   /faults")
		}
		if got := strings.HasPrefix(response.Header.Get("Content-Type"), "text/html"); got != html {
			t.Errorf("Accept %q: the answer is of type %s", accept, response.Header.Get("Content-Type"))
		}
		if response.Header.Get("Vary") != "Accept" {
			t.Errorf("Accept %q: a cache would mix the two answers up", accept)
		}
	}
}

func TestAssets(t *testing.T) {
	s := start(t, Options{})
	c := &http.Client{}
	for name, contentType := range map[string]string{
		"/ui/":          "text/html; charset=utf-8",
		"/ui/style.css": "text/css; charset=utf-8",
		"/ui/app.js":    "text/javascript; charset=utf-8",
		"/ui/icon.svg":  "image/svg+xml",
	} {
		response, body := do(t, c, request(t, http.MethodGet, s.AdminURL()+name, nil))
		want(t, response, body, http.StatusOK, "SPDX-License-Identifier")
		h := response.Header
		if h.Get("Content-Type") != contentType || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("X-Frame-Options") != "DENY" ||
			!strings.Contains(h.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s has the headers %v", name, h)
		}
	}
	for _, name := range []string{"/ui/nosuch.js", "/ui/../web.go", "/ui/%2e%2e/web.go", "/ui/..%2fweb.go", "/ui/web/app.js"} {
		if response, _ := do(t, c, request(t, http.MethodGet, s.AdminURL()+name, nil)); response.StatusCode != http.StatusNotFound {
			t.Errorf("%s: got %d", name, response.StatusCode)
		}
	}
}

var (
	elsewhere = regexp.MustCompile(`(?i)https?://|url\(|@import|src="//`)
	markup    = regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc|DOMParser|javascript:`)
	imported  = regexp.MustCompile(`from '\./([^']+)'|/ui/([a-z_]+\.[a-z]+)`)
)

// TestAssetsAreSelfContained: the page works without any other server, and never makes markup of text.
func TestAssetsAreSelfContained(t *testing.T) {
	n := 0
	err := fs.WalkDir(webFiles, "web", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		n++
		content, err := webFiles.ReadFile(name)
		if err != nil {
			return err
		}
		text := strings.ReplaceAll(string(content), "http://www.w3.org/2000/svg", "")
		if found := elsewhere.FindString(text); found != "" {
			t.Errorf("%s refers to something elsewhere: %s", name, found)
		}
		if found := markup.FindString(text); found != "" {
			t.Errorf("%s makes markup or code of text: %s", name, found)
		}
		for _, m := range imported.FindAllStringSubmatch(text, -1) {
			if _, err := webFiles.ReadFile("web/" + m[1] + m[2]); err != nil {
				t.Errorf("%s needs a file that does not exist: %v", name, err)
			}
		}
		if contentTypes[path.Ext(name)] == "" {
			t.Errorf("%s has no content type", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n < 10 {
		t.Errorf("the page has %d files only", n)
	}
}

func TestOtherSitesAreRefused(t *testing.T) {
	s := start(t, Options{})
	c := &http.Client{}
	own := s.AdminURL()
	fault := `{"operation":"GetVnic","status":500}`
	cases := []struct {
		name               string
		method, path, body string
		host, origin       string
		site, destination  string
		want               int
	}{
		{name: "curl", method: http.MethodPost, path: "/faults", body: fault, want: http.StatusCreated},
		{name: "own page", method: http.MethodPost, path: "/faults", body: fault, origin: own, site: "same-origin", want: http.StatusCreated},
		{name: "other origin", method: http.MethodPost, path: "/faults", body: fault, origin: "https://evil.example", want: http.StatusForbidden},
		{name: "other port", method: http.MethodPost, path: "/faults", body: fault, origin: "http://127.0.0.1:1", want: http.StatusForbidden},
		{name: "opaque origin", method: http.MethodPost, path: "/faults", body: fault, origin: "null", want: http.StatusForbidden},
		{name: "other site without an origin", method: http.MethodPost, path: "/faults", body: fault, site: "cross-site", want: http.StatusForbidden},
		{name: "other port without an origin", method: http.MethodPost, path: "/reset", site: "same-site", want: http.StatusForbidden},
		{name: "delete by another site", method: http.MethodDelete, path: "/faults", origin: "https://evil.example", want: http.StatusForbidden},
		{name: "rebound name", method: http.MethodPost, path: "/faults", body: fault, host: "evil.example", want: http.StatusForbidden},
		{name: "rebound name, own origin", method: http.MethodPost, path: "/faults", body: fault, host: "evil.example:18080", origin: "http://evil.example:18080", site: "same-origin", want: http.StatusForbidden},
		{name: "rebound name reads", method: http.MethodGet, path: "/state", host: "evil.example", want: http.StatusForbidden},
		{name: "rebound name opens the page", method: http.MethodGet, path: "/ui/", host: "evil.example", want: http.StatusForbidden},
		{name: "image on another site", method: http.MethodGet, path: "/env?user=mallory", site: "cross-site", destination: "image", want: http.StatusForbidden},
		{name: "link to the page", method: http.MethodGet, path: "/", site: "cross-site", destination: "document", want: http.StatusOK},
		{name: "link to something else", method: http.MethodGet, path: "/env?user=mallory", site: "cross-site", destination: "document", want: http.StatusForbidden},
		{name: "frame of another site", method: http.MethodGet, path: "/ui/", site: "cross-site", destination: "iframe", want: http.StatusForbidden},
		{name: "localhost", method: http.MethodGet, path: "/state", host: "localhost:18080", want: http.StatusOK},
		{name: "typed address", method: http.MethodGet, path: "/", site: "none", destination: "document", want: http.StatusOK},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			before := len(s.Region().ArmedFaults())
			req := request(t, tc.method, own+tc.path, []byte(tc.body))
			if tc.host != "" {
				req.Host = tc.host
			}
			for name, value := range map[string]string{"Origin": tc.origin, "Sec-Fetch-Site": tc.site, "Sec-Fetch-Dest": tc.destination} {
				if value != "" {
					req.Header.Set(name, value)
				}
			}
			response, body := do(t, c, req)
			want(t, response, body, tc.want, "")
			if got := len(s.Region().ArmedFaults()); tc.want == http.StatusForbidden && got != before {
				t.Errorf("a refused request changed the faults in force from %d to %d", before, got)
			}
		})
	}
	for _, u := range s.Users() {
		if u.Name == "mallory" {
			t.Error("a refused request made a user")
		}
	}
}
