// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Names of the controllers' clients. They are in the user agents, and with --use-service-account-credentials they are
// ServiceAccounts in kube-system: either way the API server's audit log tells who did what.
const (
	nodeClientName      = "oci-cloud-node-controller"
	lifecycleClientName = "oci-cloud-node-lifecycle-controller"
	serviceClientName   = "oci-service-lb-controller"
)

// Client is one of the controllers' clients, and what the API server must allow it. Nodes and Services are watched by
// the process itself, once for all controllers.
type Client struct {
	Name string

	// Former is the ServiceAccount of older manifests: that of the framework's controller, to which Kubernetes itself
	// binds a role.
	Former string

	// Needs are the permissions without which the controller cannot do its work.
	Needs []Permission

	// Features are the permissions of what is switched off where they are missing, or used on request only.
	Features []Permission
}

// Clients returns all of them. The roles in the manifests are exactly this.
func Clients() []Client {
	return []Client{
		{
			Name: nodeClientName, Former: "node-controller",
			Needs: append(postEvents(),
				Permission{Verb: "get", Resource: "nodes"},
				Permission{Verb: "update", Resource: "nodes"},
				Permission{Verb: "patch", Resource: "nodes"},
				Permission{Verb: "patch", Resource: "nodes", Subresource: "status"}),
			Features: []Permission{readFamilies()},
		},
		{
			Name: lifecycleClientName, Former: "node-controller",
			Needs: append(postEvents(),
				Permission{Verb: "get", Resource: "nodes"},
				Permission{Verb: "patch", Resource: "nodes"},
				Permission{Verb: "delete", Resource: "nodes"}),
		},
		{
			Name: serviceClientName, Former: "service-controller",
			Needs: append(postEvents(),
				Permission{Verb: "get", Resource: "services"},
				patchServiceStatus()),
			Features: []Permission{patchService()},
		},
	}
}

func postEvents() []Permission {
	return []Permission{{Verb: "create", Resource: "events"}, {Verb: "patch", Resource: "events"}}
}

// patchService is for what is recorded on a Service.
func patchService() Permission { return Permission{Verb: "patch", Resource: "services"} }

// patchServiceStatus is for addresses, conditions and the finalizer.
func patchServiceStatus() Permission {
	return Permission{Verb: "patch", Resource: "services", Subresource: "status"}
}

// readFamilies is for the pod CIDR controller: the Service "kubernetes" tells the cluster's IP families.
func readFamilies() Permission {
	return Permission{Verb: "get", Resource: "services", Namespace: metav1.NamespaceDefault, Name: "kubernetes"}
}
