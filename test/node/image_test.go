// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// image is a container image with one layer, made of files of this machine.
type image struct {
	name       string            // reference, with tag
	files      map[string]string // path in the image → path here; programs that are linked statically
	entrypoint []string
}

// descriptor is a reference to a blob in the OCI image format.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    map[string]string `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// archive collects the files of an image archive in the OCI image layout.
type archive struct {
	tar *tar.Writer
	err error
}

func (a *archive) file(name string, content []byte) {
	if a.err != nil {
		return
	}
	if a.err = a.tar.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content)), ModTime: time.Unix(0, 0)}); a.err == nil {
		_, a.err = a.tar.Write(content)
	}
}

func (a *archive) blob(kind string, content []byte) descriptor {
	digest := fmt.Sprintf("%x", sha256.Sum256(content))
	a.file("blobs/sha256/"+digest, content)
	return descriptor{MediaType: "application/vnd.oci.image." + kind, Digest: "sha256:" + digest, Size: len(content)}
}

func (a *archive) document(kind string, v any) descriptor {
	text, err := json.Marshal(v)
	if err != nil {
		a.err = err
	}
	return a.blob(kind, text)
}

// write makes an archive that "ctr images import" understands.
func (i image) write(to string) error {
	layer, err := i.layer()
	if err != nil {
		return fmt.Errorf("image %s: %w", i.name, err)
	}
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	defer f.Close()
	a := &archive{tar: tar.NewWriter(f)}
	layers := []descriptor{a.blob("layer.v1.tar", layer)}
	config := a.document("config.v1+json", map[string]any{
		"architecture": runtime.GOARCH, "os": "linux", "created": "1970-01-01T00:00:00Z",
		"config": map[string]any{"Env": []string{"PATH=/usr/local/bin:/usr/bin:/bin"}, "Entrypoint": i.entrypoint},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{layers[0].Digest}},
	})
	manifest := a.document("manifest.v1+json", map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config, "layers": layers,
	})
	manifest.Platform = map[string]string{"architecture": runtime.GOARCH, "os": "linux"}
	manifest.Annotations = map[string]string{"io.containerd.image.name": i.name}
	index, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": []descriptor{manifest},
	})
	if err != nil {
		return err
	}
	a.file("index.json", index)
	a.file("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`))
	if a.err == nil {
		a.err = a.tar.Close()
	}
	if a.err != nil {
		return fmt.Errorf("image %s: %w", i.name, a.err)
	}
	return nil
}

// layer is the only layer of an image, uncompressed.
func (i image) layer() ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	made := map[string]bool{".": true}
	var directory func(string) error
	directory = func(name string) error {
		if made[name] {
			return nil
		}
		made[name] = true
		if err := directory(path.Dir(name)); err != nil {
			return err
		}
		return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755, ModTime: time.Unix(0, 0)})
	}
	for _, name := range []string{"tmp", "etc"} {
		if err := directory(name); err != nil {
			return nil, err
		}
	}
	for name, from := range i.files {
		name = strings.TrimPrefix(name, "/")
		if err := directory(path.Dir(name)); err != nil {
			return nil, err
		}
		content, err := os.ReadFile(from)
		if err != nil {
			return nil, err
		}
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content)), ModTime: time.Unix(0, 0)}); err != nil {
			return nil, err
		}
		if _, err := w.Write(content); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), w.Close()
}

// writeImages makes the archives of images in a directory, and returns their paths.
func writeImages(dir string, images []image) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var archives []string
	for n, i := range images {
		to := filepath.Join(dir, fmt.Sprintf("%d.tar", n))
		if err := i.write(to); err != nil {
			return nil, err
		}
		archives = append(archives, to)
	}
	return archives, nil
}
