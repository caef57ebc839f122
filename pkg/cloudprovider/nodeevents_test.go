// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
)

// All events of all nodes are one for the framework's service controller; and a Node is the same object until something
// changes that matters to balancers.
func TestNodeEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		factory := informers.NewSharedInformerFactory(client, 0)
		nodes := newNodeEvents(factory.Core().V1().Nodes())
		keys := map[string]map[string]int{"add": {}, "update": {}, "delete": {}}
		note := func(kind string, obj any) {
			key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
			if err != nil {
				t.Error(err)
			}
			keys[kind][key]++
		}
		taints := 0
		if _, err := nodes.Informer().AddEventHandlerWithResyncPeriod(cache.ResourceEventHandlerFuncs{
			AddFunc: func(obj any) { note("add", obj) },
			UpdateFunc: func(old, current any) {
				note("update", current)
				taints += len(current.(*v1.Node).Spec.Taints) - len(old.(*v1.Node).Spec.Taints)
			},
			DeleteFunc: func(obj any) { note("delete", obj) },
		}, 0); err != nil {
			t.Fatal(err)
		}
		factory.Start(t.Context().Done())
		factory.WaitForCacheSync(t.Context().Done())
		api := client.CoreV1().Nodes()
		for i := range 20 {
			n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("w-", i), UID: types.UID(fmt.Sprint("uid-", i)), ResourceVersion: "1"}}
			if _, err := api.Create(t.Context(), n, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		list := func() map[string]*v1.Node {
			synctest.Wait()
			all, err := nodes.Lister().List(labels.Everything())
			if err != nil {
				t.Fatal(err)
			}
			byName := map[string]*v1.Node{}
			for _, n := range all {
				byName[n.Name] = n
			}
			return byName
		}
		first := list()
		version := 1
		change := func(name string, change func(*v1.Node)) {
			t.Helper()
			n, err := api.Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			change(n)
			version++
			n.ResourceVersion = fmt.Sprint(version)
			if _, err := api.Update(t.Context(), n, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		heartbeat := func(n *v1.Node) {
			n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeMemoryPressure, Status: v1.ConditionFalse, LastHeartbeatTime: metav1.NewTime(time.Now())}}
		}
		change("w-0", heartbeat)
		for name, matters := range map[string]func(*v1.Node){
			"w-1": func(n *v1.Node) { n.Labels = map[string]string{"a": "b"} },
			"w-2": func(n *v1.Node) { n.Annotations = map[string]string{"a": "b"} },
			"w-3": func(n *v1.Node) { n.Spec.Taints = []v1.Taint{{Key: "a", Effect: v1.TaintEffectNoSchedule}} },
			"w-4": func(n *v1.Node) { n.Spec.ProviderID = "ocid1.instance.oc1.iad.x" },
			"w-5": func(n *v1.Node) {
				n.Status.Addresses = []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: "10.0.0.1"}}
			},
			"w-6": func(n *v1.Node) {
				n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}
			},
		} {
			change(name, matters)
		}
		second := list()
		for name, n := range second {
			changed := name >= "w-1" && name <= "w-6" && len(name) == 3
			if (n != first[name]) != changed {
				t.Errorf("%s: another object is listed: %t; want %t", name, n != first[name], changed)
			}
		}
		change("w-1", heartbeat)
		if third := list(); third["w-1"] != second["w-1"] || third["w-1"].Labels["a"] != "b" || len(third) != 20 {
			t.Errorf("w-1 is another object after a heartbeat: %v", third["w-1"])
		}
		if err := api.Delete(t.Context(), "w-9", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if left := list(); len(left) != 19 || left["w-9"] != nil {
			t.Errorf("%d nodes are listed", len(left))
		}
		for kind, want := range map[string]int{"add": 20, "update": 8, "delete": 1} {
			if len(keys[kind]) != 1 || keys[kind][anyNode] != want {
				t.Errorf("keys of %s: %v; want one, %d times", kind, keys[kind], want)
			}
		}
		if taints != 1 {
			t.Errorf("%d taints appeared in the events; want 1", taints)
		}
	})
}
