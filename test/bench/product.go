// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// productRows are the budgets of the product. What a component test measures and asserts is not measured again here: the
// row runs the test and shows the figures that it logs as "budget <row>: <figure>".
func productRows(s *scaling) []row {
	lb := func(name, what, budget, test string) row {
		return row{name: name, what: what, budget: budget, measure: tested(name, "./pkg/loadbalancer", test)}
	}
	csi := func(name, what, budget, test string) row {
		return row{name: name, what: what, budget: budget, measure: tested(name, "./pkg/csi/block", test)}
	}
	return []row{
		{
			name: "P1", what: "status pass over 1,000 and 5,000 nodes, page size 1,000, 2 private subnets", budget: "10 and 50 list calls",
			measure: tested("P1", "./pkg/inventory", "TestPassCostsPages"),
		},
		{
			name: "P2", what: "500 nodes join at once (L = 100 ms, R = 20/s; virtual time, no API server)", budget: "15 s",
			measure: tested("P2", "./pkg/cloudprovider", "TestManyNodesJoinAtOnce"),
		},
		{
			name: "P3", what: "50 nodes NotReady for 10 minutes", budget: "1 list per 10 s",
			measure: tested("P3", "./pkg/cloudprovider", "TestManyNodesNotReady"),
		},
		lb("P4", "restart with 200 unchanged Services", "204 calls", "TestRestartWithManyServices"),
		lb("P5", "create a balancer with 3 ports (T = 30 s)", "T + 1 s", "TestTimes"),
		lb("P6", "add a port to a live balancer (T = 30 s)", "2 T + 1 s", "TestTimes"),
		lb("P7", "a node joins 50 balancers with 3 ports (T = 10 s); each works off its changes in turn", "LB 3 T + 2 s, NLB 3 T + 15 s", "TestNodeAddedToManyBalancers"),
		csi("P8", "attach a volume, T uniform 1–6 s: answer after the cloud is ready", "p50 0.5 s, p99 1.5 s", "TestAttachmentsAreAnsweredSoon"),
		csi("P9", "32 volumes to one node at once", "0 conflicts, 32 calls", "TestManyAtOnce"),
		csi("P10", "500 volume claims on 20 nodes (T create 2 s, attach 3 s; L = 100 ms, R = 20/s reads and writes)", "80 % of R, 6 calls per volume", "TestManyClaims"),
		csi("P11", "R halves for 60 s in the middle of P10", "no failed operation, calls ≤ R", "TestThrottledClaims"),
		{
			name: "P12", what: "the same Service, and the same RPC of the CSI driver, 10 times while the first runs", budget: "0 extra writes",
			measure: both(tested("P12", "./pkg/loadbalancer", "TestConcurrentCalls"), tested("P12", "./pkg/csi/block", "TestSameCallTenTimes")),
		},
		s.row(),
		{name: "P14", what: "start to first useful work, with an API server that answers (the fastest of 3)", budget: "2 s", measure: measureStarts},
	}
}

// tested runs a component test. Its figures are the row's; the test itself knows whether they are within the budget.
func tested(name, pkg, test string) func(context.Context) (string, bool, error) {
	return func(ctx context.Context) (string, bool, error) {
		out, err := exec.CommandContext(ctx, "go", "test", "-count=1", "-v", "-run", "^"+test+"$", pkg).CombinedOutput()
		var failed *exec.ExitError
		if err != nil && !errors.As(err, &failed) {
			return "", false, fmt.Errorf("go test: %w", err)
		}
		figures := figures(out, name)
		switch {
		case len(figures) > 0:
			return strings.Join(figures, ", "), err == nil, nil
		case err != nil:
			return "", false, fmt.Errorf("%s failed before it measured anything:\n%s", test, bytes.TrimSpace(out))
		default:
			return "", false, fmt.Errorf("%s logs no figure for %s", test, name)
		}
	}
}

// both measures one thing after the other.
func both(one, other func(context.Context) (string, bool, error)) func(context.Context) (string, bool, error) {
	return func(ctx context.Context) (string, bool, error) {
		first, kept, err := one(ctx)
		if err != nil {
			return "", false, err
		}
		second, keptToo, err := other(ctx)
		return first + ", " + second, kept && keptToo, err
	}
}

// figures are what a test logged for a row, each once.
func figures(out []byte, name string) []string {
	var list []string
	for line := range strings.Lines(string(out)) {
		_, figure, found := strings.Cut(strings.TrimSpace(line), "budget "+name+": ")
		if found && (len(list) == 0 || list[len(list)-1] != figure) {
			list = append(list, figure)
		}
	}
	return list
}
