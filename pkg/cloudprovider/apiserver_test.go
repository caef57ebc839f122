// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cloudprovider_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	authorizationv1 "k8s.io/api/authorization/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
)

// apiServer makes the fake clientset behave more like an API server: every write gives a new resource version, without
// which informers take an update for a resync; a patch with another UID or version is a conflict; permissions can be missing.
// It keeps no managed fields, which fake.NewClientset spends a third of these tests' time on.
type apiServer struct {
	client  *fake.Clientset
	objects clienttesting.ObjectTracker
	version atomic.Int64
	names   atomic.Int64
	missing []string // permissions, as "verb resource" or "verb resource/subresource"
}

func newAPIServer() *apiServer {
	s := &apiServer{client: &fake.Clientset{}, objects: clienttesting.NewObjectTracker(scheme.Scheme, scheme.Codecs.UniversalDecoder())}
	s.client.AddReactor("*", "*", clienttesting.ObjectReaction(s.objects))
	s.client.AddWatchReactor("*", s.watch)
	s.client.PrependReactor("create", "*", s.stamp)
	s.client.PrependReactor("update", "*", s.stamp)
	s.client.PrependReactor("patch", "*", s.patch)
	s.client.PrependReactor("create", "events", s.nameEvent)
	s.client.PrependReactor("create", "selfsubjectaccessreviews", s.reviewAccess)
	return s
}

func (s *apiServer) watch(a clienttesting.Action) (bool, watch.Interface, error) {
	w, err := s.objects.Watch(a.GetResource(), a.GetNamespace(), a.(clienttesting.WatchActionImpl).ListOptions)
	return true, w, err
}

func (s *apiServer) next() string { return strconv.FormatInt(s.version.Add(1), 10) }

func (s *apiServer) stamp(a clienttesting.Action) (bool, runtime.Object, error) {
	object := a.(clienttesting.CreateAction).GetObject() // an update has the same method
	if m, err := meta.Accessor(object); err == nil {
		m.SetResourceVersion(s.next())
	}
	return false, nil, nil
}

// nameEvent gives events names of their own. The recorder makes them of the clock, which may stand still.
func (s *apiServer) nameEvent(a clienttesting.Action) (bool, runtime.Object, error) {
	event := a.(clienttesting.CreateAction).GetObject().(*v1.Event)
	event.Name = fmt.Sprintf("%s.%d", event.Name, s.names.Add(1))
	return false, nil, nil
}

func (s *apiServer) reviewAccess(a clienttesting.Action) (bool, runtime.Object, error) {
	review := a.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview)
	r := review.Spec.ResourceAttributes
	rule := strings.TrimSuffix(r.Verb+" "+r.Resource+"/"+r.Subresource, "/")
	review.Status.Allowed = !slices.Contains(s.missing, rule)
	return true, review, nil
}

func (s *apiServer) patch(a clienttesting.Action) (bool, runtime.Object, error) {
	action := a.(clienttesting.PatchAction)
	current, err := s.objects.Get(action.GetResource(), action.GetNamespace(), action.GetName())
	if err != nil {
		return true, nil, err
	}
	patched, err := apply(current, action)
	if err != nil {
		return true, nil, err
	}
	before, _ := meta.Accessor(current)
	after, _ := meta.Accessor(patched)
	if before.GetUID() != after.GetUID() || before.GetResourceVersion() != after.GetResourceVersion() {
		return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: action.GetResource().Resource}, action.GetName(), nil)
	}
	after.SetResourceVersion(s.next())
	return true, patched, s.objects.Update(action.GetResource(), patched, action.GetNamespace())
}

func apply(current runtime.Object, action clienttesting.PatchAction) (runtime.Object, error) {
	original, err := json.Marshal(current)
	if err != nil {
		return nil, err
	}
	var result []byte
	switch action.GetPatchType() {
	case types.StrategicMergePatchType:
		result, err = strategicpatch.StrategicMergePatch(original, action.GetPatch(), current)
	case types.MergePatchType:
		var target, change any
		if err := json.Unmarshal(original, &target); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(action.GetPatch(), &change); err != nil {
			return nil, err
		}
		result, err = json.Marshal(merge(target, change))
	default:
		return nil, fmt.Errorf("patch type %s", action.GetPatchType())
	}
	if err != nil {
		return nil, err
	}
	patched := reflect.New(reflect.TypeOf(current).Elem()).Interface().(runtime.Object)
	return patched, json.Unmarshal(result, patched)
}

// merge is RFC 7386.
func merge(target, change any) any {
	changes, ok := change.(map[string]any)
	if !ok {
		return change
	}
	object, ok := target.(map[string]any)
	if !ok {
		object = map[string]any{}
	}
	for key, value := range changes {
		if value == nil {
			delete(object, key)
		} else {
			object[key] = merge(object[key], value)
		}
	}
	return object
}
