// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"embed"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
)

// webFiles is the page for browsers: plain HTML, CSS and JavaScript, with nothing from elsewhere.
//
//go:embed web
var webFiles embed.FS

// contentTypes of the page's files. The types that the operating system knows do not matter.
var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// contentPolicy allows the page what it needs and nothing else. Resources have names that strangers chose; should the
// page ever put one into a document as markup, the browser still runs nothing of it.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// index answers GET /: a browser gets the page, everybody else the list of requests.
func index(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Vary", "Accept")
	if strings.Contains(r.Header.Get("Accept"), "text/html") {
		serveAsset(w, "index.html")
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, adminIndex)
}

// asset answers GET /ui/…
func asset(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	if name == "" {
		name = "index.html"
	}
	serveAsset(w, name)
}

func serveAsset(w http.ResponseWriter, name string) {
	content, err := webFiles.ReadFile("web/" + name)
	contentType := contentTypes[path.Ext(name)]
	if err != nil || contentType == "" {
		adminError(w, http.StatusNotFound, fmt.Errorf("the page has no file %q", name))
		return
	}
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("Cache-Control", "no-cache") // the next release is at the same address
	_, _ = w.Write(content)
}

// assetsVersion is another one whenever a file of the page is another one, so that a page which outlives its server can
// tell that it is out of date.
func assetsVersion() string {
	hash := fnv.New64a()
	err := fs.WalkDir(webFiles, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := webFiles.ReadFile(name)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(hash, "%s %d %s", name, len(content), content)
		return err
	})
	if err != nil {
		panic("ocisim: " + err.Error()) // the files are part of the program
	}
	return strconv.FormatUint(hash.Sum64(), 36)
}

var errOtherSite = errors.New("requests from pages of other sites are refused")

// sameSite refuses what a page of another site sends. Browsers mark such requests; programs do not, and are let through.
// Following a link to the page is all that another site may do. This stands besides localOnly, which refuses foreign
// names of this host and foreign origins: not every request of a page has an origin.
func sameSite(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Referrer-Policy", "no-referrer")
		from := r.Header.Get("Sec-Fetch-Site")
		followed := r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Dest") == "document" &&
			(r.URL.Path == "/" || r.URL.Path == "/ui/")
		if from != "" && from != "same-origin" && from != "none" && !followed {
			adminError(w, http.StatusForbidden, errOtherSite)
			return
		}
		next.ServeHTTP(w, r)
	})
}
