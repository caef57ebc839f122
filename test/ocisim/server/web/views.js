// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

// The views in the order of the navigation.

import { balancers } from './view_balancers.js';
import { calls } from './view_calls.js';
import { faults } from './view_faults.js';
import { instances } from './view_instances.js';
import { network } from './view_network.js';
import { overview } from './view_overview.js';
import { security } from './view_security.js';
import { files, volumes } from './view_storage.js';
import { register, rest } from './resources.js';

const special = [balancers, instances, volumes, files, network, security];
special.forEach(register);

export const views = [overview, calls, faults, ...special, rest];
