// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"text/template"
	"time"
)

// What -write writes, from the root of the repository. Of the document, the part between the marks.
const (
	documentPath = "docs/performance.md"
	plotPath     = "docs/images/nodes.svg"

	beginMark = "<!-- measured: begin -->"
	endMark   = "<!-- measured: end -->"
)

// report is what the document shows.
type report struct {
	Figures []crowdFigures
	Results []result // of all rows, P13 among them
	Machine string
}

// machine describes where and when something was measured.
func machine(loadBefore, loadAfter string) string {
	return fmt.Sprintf("%s, %d cores, %s/%s, %s; load average %s before and %s after",
		time.Now().UTC().Format("2006-01-02 15:04 UTC"), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(), loadBefore, loadAfter)
}

// loadAverage is how many processes wanted a core in the last minute.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}

var documentTemplate = template.Must(template.New("document").Funcs(template.FuncMap{"thousands": thousands}).Parse(`{{.Machine}}.

| | Kind |{{range .Rows}} {{thousands .Nodes}} nodes |{{end}}
|---|---|{{range .Rows}}---:|{{end}}
| OCI calls of a pass over all nodes | count |{{range .Rows}} {{.PassCalls}} |{{end}}
| OCI calls until all nodes are initialised, that join at once | count |{{range .Rows}} {{.Calls}} |{{end}}
| rounds of lists per minute while {{.NotReady}} nodes are not ready | count |{{range .Rows}} {{.Lists}} |{{end}}
| single reads of instances per minute, then | count |{{range .Rows}} {{.Singles}} |{{end}}
| resident memory: at its highest, MiB | memory |{{range .Rows}} {{.Peak}} |{{end}}
| resident memory: in the end, MiB | memory |{{range .Rows}} {{.Resident}} |{{end}}
| CPU of a pass, s | CPU time |{{range .Rows}} {{.PassCPU}} |{{end}}
| CPU of a pass per node, µs | CPU time |{{range .Rows}} {{.PerNode}} |{{end}}
| CPU between passes, % of a core | CPU time |{{range .Rows}} {{.Idle}} |{{end}}
| a pass, s | time |{{range .Rows}} {{.Pass}} |{{end}}
| join: kubelets have made their Nodes, s | time |{{range .Rows}} {{.Register}} |{{end}}
| join: all nodes are initialised, s | time |{{range .Rows}} {{.Join}} |{{end}}
| join: 99 % of the nodes wait less than, s | time |{{range .Rows}} {{.JoinP99}} |{{end}}

| | Budget | Measured | |
|---|---|---|---|
{{range .Results}}| {{.Name}}: {{.What}} | {{.Budget}} | {{.Measured}} | {{.Verdict}} |
{{end}}`))

// documentRow is a column of the first table, as text.
type documentRow struct {
	Nodes, PassCalls, Calls, Lists, Singles      int
	Peak, Resident, PassCPU, PerNode, Idle, Pass string
	Register, Join, JoinP99                      string
}

// documentResult is a row of the second.
type documentResult struct{ Name, What, Budget, Measured, Verdict string }

// text is the part of the document between the marks.
func (r report) text() (string, error) {
	seconds := func(d time.Duration) string { return fmt.Sprintf("%.1f", d.Seconds()) }
	data := struct {
		Machine  string
		NotReady int
		Rows     []documentRow
		Results  []documentResult
	}{Machine: r.Machine, NotReady: notReadyNodes}
	for _, f := range r.Figures {
		data.Rows = append(data.Rows, documentRow{
			Nodes: f.nodes, PassCalls: f.passCalls, Calls: f.calls, Lists: f.lists, Singles: f.singles,
			Peak: fmt.Sprint(f.peak >> 20), Resident: fmt.Sprint(f.resident >> 20),
			PassCPU: fmt.Sprintf("%.2f", f.passCPU.Seconds()), PerNode: fmt.Sprintf("%.0f", 1e6*f.passCPU.Seconds()/float64(f.nodes)),
			Idle: fmt.Sprintf("%.1f", 100*f.idle), Pass: seconds(f.pass),
			Register: seconds(f.register), Join: seconds(f.join), JoinP99: seconds(f.joinP99),
		})
	}
	for _, one := range r.Results {
		cell := func(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
		data.Results = append(data.Results, documentResult{one.name, cell(one.what), cell(one.budget), cell(one.measured), one.verdict()})
	}
	var text strings.Builder
	if err := documentTemplate.Execute(&text, data); err != nil {
		return "", err
	}
	return text.String(), nil
}

// between replaces what is between the marks of a document.
func between(document, text string) (string, error) {
	before, rest, found := strings.Cut(document, beginMark)
	_, after, found2 := strings.Cut(rest, endMark)
	if !found || !found2 {
		return "", fmt.Errorf("%s has not the lines %q and %q", documentPath, beginMark, endMark)
	}
	return before + beginMark + "\n" + text + endMark + after, nil
}

// writeDocument writes what was measured into the documents.
func writeDocument(r report) error {
	text, err := r.text()
	if err != nil {
		return err
	}
	old, err := os.ReadFile(documentPath)
	if err != nil {
		return err
	}
	document, err := between(string(old), text)
	if err != nil {
		return err
	}
	plot, err := plotFigures(r.Figures)
	if err != nil {
		return err
	}
	if err := os.WriteFile(documentPath, []byte(document), 0o644); err != nil {
		return err
	}
	return os.WriteFile(plotPath, []byte(plot), 0o644)
}
