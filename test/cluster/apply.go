// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
)

// fieldManager owns the fields that Apply sets.
const fieldManager = "oci-ccm-test"

// Apply applies YAML files (server-side, as administrator) in the given order. A
// directory stands for the .yaml files directly in it, in order of their names.
func (c *Cluster) Apply(ctx context.Context, paths ...string) error {
	objects, err := LoadManifests(paths...)
	if err != nil {
		return err
	}
	return c.ApplyObjects(ctx, objects...)
}

// ApplyObjects applies objects (server-side, as administrator) in the given order.
// A namespaced object without a namespace goes to "default".
func (c *Cluster) ApplyObjects(ctx context.Context, objects ...*unstructured.Unstructured) error {
	mapper, client, err := c.mapper.get(c)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if err := applyObject(ctx, mapper, client, object); err != nil {
			return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

func applyObject(ctx context.Context, mapper *restmapper.DeferredDiscoveryRESTMapper, client dynamic.Interface, object *unstructured.Unstructured) error {
	kind := object.GroupVersionKind()
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	var target dynamic.ResourceInterface = client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		namespace := object.GetNamespace()
		if namespace == "" {
			namespace = metav1.NamespaceDefault
		}
		target = client.Resource(mapping.Resource).Namespace(namespace)
	}
	_, err = target.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	return err
}

// lazyMapper holds what Apply needs: most clusters never see an Apply.
type lazyMapper struct {
	once   sync.Once
	mapper *restmapper.DeferredDiscoveryRESTMapper
	client dynamic.Interface
	err    error
}

func (l *lazyMapper) get(c *Cluster) (*restmapper.DeferredDiscoveryRESTMapper, dynamic.Interface, error) {
	l.once.Do(func() {
		l.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(c.client.Discovery()))
		l.client, l.err = dynamic.NewForConfigAndClient(c.config, c.http)
	})
	return l.mapper, l.client, l.err
}

// LoadManifests reads the objects of YAML files; several documents in a file and
// objects of kind List are taken apart. A directory stands for the .yaml files
// directly in it, in order of their names.
func LoadManifests(paths ...string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, path := range paths {
		files, err := manifestFiles(path)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			loaded, err := loadManifest(file)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			objects = append(objects, loaded...)
		}
	}
	return objects, nil
}

func manifestFiles(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	names, err := fs.Glob(os.DirFS(path), "*.yaml")
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s has no .yaml files", path)
	}
	files := make([]string, 0, len(names))
	for _, name := range names {
		files = append(files, filepath.Join(path, name))
	}
	return files, nil
}

func loadManifest(file string) ([]*unstructured.Unstructured, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()

	var objects []*unstructured.Unstructured
	documents := utilyaml.NewYAMLReader(bufio.NewReader(f))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		json, err := utilyaml.ToJSON(document)
		if err != nil {
			return nil, err
		}
		if bytes.Equal(bytes.TrimSpace(json), []byte("null")) {
			continue // only comments
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(json); err != nil {
			return nil, err
		}
		if !object.IsList() {
			objects = append(objects, object)
			continue
		}
		err = object.EachListItem(func(item runtime.Object) error {
			objects = append(objects, item.(*unstructured.Unstructured))
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
}
