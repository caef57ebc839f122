// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Other ways to the region than the environment of a user.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import * as common from "oci-common";
import * as core from "oci-core";
import * as filestorage from "oci-filestorage";
import * as identity from "oci-identity";
import * as loadbalancer from "oci-loadbalancer";
import * as networkloadbalancer from "oci-networkloadbalancer";

import { closing, compartmentId, must, provider } from "./region.js";

const authenticationDetailsProvider = provider;
const endpoint = must(process.env["OCISIM_ENDPOINT"]);

test("an endpoint given to each client, without the proxy", async () => {
  const compute = closing(new core.ComputeClient({ authenticationDetailsProvider }));
  compute.endpoint = endpoint;
  assert.ok((await compute.listInstances({ compartmentId })).items.length > 0);
  const iam = closing(new identity.IdentityClient({ authenticationDetailsProvider }));
  iam.endpoint = endpoint;
  const files = closing(new filestorage.FileStorageClient({ authenticationDetailsProvider }));
  files.endpoint = endpoint;
  const { items: domains } = await iam.listAvailabilityDomains({ compartmentId });
  await files.listFileSystems({ compartmentId, availabilityDomain: must(must(domains[0]).name) });
  const lb = closing(new loadbalancer.LoadBalancerClient({ authenticationDetailsProvider }));
  lb.endpoint = endpoint;
  assert.ok((await lb.listShapes({ compartmentId })).items.some(({ name }) => name === "flexible"));
  const nlb = closing(new networkloadbalancer.NetworkLoadBalancerClient({ authenticationDetailsProvider }));
  nlb.endpoint = endpoint;
  assert.ok((await nlb.listNetworkLoadBalancers({ compartmentId })).networkLoadBalancerCollection.items);
});

test("an instance principal", async () => {
  const builder = new common.InstancePrincipalsAuthenticationDetailsProviderBuilder();
  builder.metadataBaseUrl = must(process.env["OCI_METADATA_BASE_URL"]);
  const client = closing(new core.ComputeClient({ authenticationDetailsProvider: await builder.build() }));
  const { items } = await client.listInstances({ compartmentId, displayName: "worker-3" });
  assert.equal(items.length, 1);
});

const proxied = process.allowedNodeEnvironmentFlags.has("--use-env-proxy");
const skip = proxied ? false : "only node:http of Node.js from 22.21 and 24.5 asks the metadata service through a proxy";

test("an instance principal by nothing but the environment", { skip }, async () => {
  const provider = await new common.InstancePrincipalsAuthenticationDetailsProviderBuilder().build();
  const client = closing(new core.ComputeClient({ authenticationDetailsProvider: provider }));
  assert.equal((await client.listInstances({ compartmentId, displayName: "worker-3" })).items.length, 1);
});

test("OKE workload identity", async () => {
  const [host, port] = must(process.env["OCISIM_PROXYMUX"]).split(":");
  process.env["KUBERNETES_SERVICE_HOST"] = must(host);
  process.env["KUBERNETES_SERVICE_PORT_PROXYMUX"] = must(port);
  const now = Math.floor(Date.now() / 1000);
  const claims = { sub: "system:serviceaccount:default:script", iat: now, exp: now + 3600 };
  const encoded = [{ alg: "RS256" }, claims, "signature"].map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"));
  const token = join(homedir(), "token");
  writeFileSync(token, encoded.join("."));
  const { OkeWorkloadIdentityAuthenticationDetailsProviderBuilder: Builder } = common.OkeWorkloadIdentityAuthenticationDetailsProvider;
  const provider = new Builder(must(process.env["NODE_EXTRA_CA_CERTS"]), token).build();
  const client = closing(new core.ComputeClient({ authenticationDetailsProvider: provider }));
  client.region = common.Region.US_ASHBURN_1;
  assert.equal((await client.listInstances({ compartmentId, displayName: "worker-3" })).items.length, 1);
});
