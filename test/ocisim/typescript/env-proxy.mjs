// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// Makes fetch of an older Node.js use HTTPS_PROXY, HTTP_PROXY and NO_PROXY, as NODE_USE_ENV_PROXY=1 does from 22.21 and
// 24.5. A program is run with it as: node --import ./env-proxy.mjs program.js
import { EnvHttpProxyAgent, setGlobalDispatcher } from "undici";

setGlobalDispatcher(new EnvHttpProxyAgent());
