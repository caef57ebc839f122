// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"text/template"
)

// The plot: two panels beside each other, in pixels.
const (
	plotWidth, plotHeight   = 960, 400
	panelLeft, panelRight   = 56, 165 // room for the numbers and for the labels of the lines
	panelTop, panelBottom   = 56, 60
	labelHeight             = 15 // that labels of lines are apart at least
	oldCallsPerNode         = 3  // of a pass of v1.35: GetInstance, ListVnicAttachments, GetVnic
	panels                  = 2
	panelWidth, panelHeight = plotWidth / panels, plotHeight
)

// series is one line.
type series struct {
	label, class string
	value        func(crowdFigures) float64
}

// panel is one pair of axes, both logarithmic.
type panel struct {
	title  string
	series []series
}

func plotPanels() []panel {
	return []panel{
		{"Calls to the OCI API", []series{
			{"a pass of v1.35", "old", func(f crowdFigures) float64 { return float64(oldCallsPerNode * f.nodes) }},
			{"all nodes join", "join", func(f crowdFigures) float64 { return float64(f.calls) }},
			{"a pass", "pass", func(f crowdFigures) float64 { return float64(f.passCalls) }},
		}},
		{"Seconds", []series{
			{"all nodes join", "join", func(f crowdFigures) float64 { return f.join.Seconds() }},
			{"a pass", "pass", func(f crowdFigures) float64 { return f.pass.Seconds() }},
			{"a pass, CPU", "cpu", func(f crowdFigures) float64 { return f.passCPU.Seconds() }},
		}},
	}
}

// What the template draws.
type (
	drawing struct {
		Width, Height int
		Panels        []drawnPanel
	}
	drawnPanel struct {
		Title                    string
		Left, Right, Top, Bottom float64
		X, Y                     []tick
		Lines                    []line
	}
	tick struct {
		At   float64
		Text string
	}
	line struct {
		Class, Label, Points string
		Dots                 []dot
		LabelX, LabelY       float64
	}
	dot struct {
		X, Y  float64
		Title string
	}
)

// scale maps values to pixels along a logarithmic axis.
type scale struct{ low, high, from, to float64 }

func (s scale) at(value float64) float64 {
	return s.from + (s.to-s.from)*(math.Log(value)-math.Log(s.low))/(math.Log(s.high)-math.Log(s.low))
}

// plotFigures draws calls and seconds against nodes, as SVG.
func plotFigures(all []crowdFigures) (string, error) {
	if len(all) < 2 {
		return "", errors.New("a plot needs two numbers of nodes at least")
	}
	d := drawing{Width: plotWidth, Height: plotHeight}
	for i, p := range plotPanels() {
		d.Panels = append(d.Panels, p.draw(all, float64(i*panelWidth)))
	}
	var text strings.Builder
	if err := plotTemplate.Execute(&text, d); err != nil {
		return "", err
	}
	return text.String(), nil
}

func (p panel) draw(all []crowdFigures, offset float64) drawnPanel {
	d := drawnPanel{
		Title: p.title, Left: offset + panelLeft, Right: offset + panelWidth - panelRight, Top: panelTop, Bottom: panelHeight - panelBottom,
	}
	x := scale{float64(all[0].nodes), float64(all[len(all)-1].nodes), d.Left, d.Right}
	for _, f := range all {
		d.X = append(d.X, tick{x.at(float64(f.nodes)), thousands(f.nodes)})
	}
	low, high := p.decades(all)
	y := scale{low, high, d.Bottom, d.Top}
	for v := low; v <= high*1.01; v *= 10 {
		d.Y = append(d.Y, tick{y.at(v), decade(v)})
	}
	for _, s := range p.series {
		l := line{Class: s.class, Label: s.label, LabelX: d.Right + 10}
		var points []string
		for _, f := range all {
			one := dot{x.at(float64(f.nodes)), y.at(s.value(f)), fmt.Sprintf("%s, %s nodes: %s", s.label, thousands(f.nodes), number(s.value(f)))}
			l.Dots = append(l.Dots, one)
			points = append(points, fmt.Sprintf("%.1f,%.1f", one.X, one.Y))
		}
		l.Points, l.LabelY = strings.Join(points, " "), l.Dots[len(l.Dots)-1].Y
		l.Label += " " + number(s.value(all[len(all)-1]))
		d.Lines = append(d.Lines, l)
	}
	spread(d.Lines)
	return d
}

// decades are the powers of ten around all values.
func (p panel) decades(all []crowdFigures) (low, high float64) {
	low, high = math.Inf(1), 0
	for _, s := range p.series {
		for _, f := range all {
			low, high = min(low, s.value(f)), max(high, s.value(f))
		}
	}
	low, high = math.Pow(10, math.Floor(math.Log10(low))), math.Pow(10, math.Ceil(math.Log10(high)))
	if low == high {
		high *= 10
	}
	return low, high
}

// spread moves labels down that would cover each other.
func spread(lines []line) {
	order := make([]*line, 0, len(lines))
	for i := range lines {
		order = append(order, &lines[i])
	}
	slices.SortFunc(order, func(a, b *line) int { return int(math.Copysign(1, a.LabelY-b.LabelY)) })
	for i := 1; i < len(order); i++ {
		order[i].LabelY = max(order[i].LabelY, order[i-1].LabelY+labelHeight)
	}
}

// decade writes a power of ten.
func decade(v float64) string {
	if v >= 1 {
		return thousands(int(math.Round(v)))
	}
	return fmt.Sprintf("%.*f", int(math.Round(-math.Log10(v))), v)
}

// number writes a value with two digits or more.
func number(v float64) string {
	switch {
	case v >= 10:
		return thousands(int(math.Round(v)))
	case v >= 1:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0")
	default:
		return fmt.Sprintf("%.2g", v)
	}
}

// plotTemplate brings a background of its own, so that the plot can be read wherever it is shown.
var plotTemplate = template.Must(template.New("plot").Parse(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {{.Width}} {{.Height}}" width="{{.Width}}" height="{{.Height}}" role="img" aria-label="Calls and seconds against the number of nodes, on logarithmic axes">
<!-- Copyright The OCI Cloud Controller Manager Authors -->
<!-- SPDX-License-Identifier: Apache-2.0 -->
<!-- written by make bench ARGS='-run P13 -write' -->
<style>
svg { --paper: #ffffff; --ink: #1f2328; --faint: #59636e; --grid: #d1d9e0; --join: #b35900; --pass: #0550ae; --cpu: #116329 }
@media (prefers-color-scheme: dark) { svg { --paper: #0d1117; --ink: #f0f6fc; --faint: #9198a1; --grid: #3d444d; --join: #ffa657; --pass: #79c0ff; --cpu: #7ee787 } }
text { font: 13px system-ui, sans-serif; fill: var(--ink) }
.title { font-size: 15px; font-weight: 600 }
.axis { fill: var(--faint) }
.grid { stroke: var(--grid); stroke-width: 1 }
polyline { fill: none; stroke-width: 2.5 }
.join { stroke: var(--join); fill: var(--join) } .pass { stroke: var(--pass); fill: var(--pass) } .cpu { stroke: var(--cpu); fill: var(--cpu) } .old { stroke: var(--faint); fill: var(--faint) }
polyline.old { stroke-dasharray: 6 5 }
polyline.join, polyline.pass, polyline.cpu, polyline.old { fill: none }
text.join, text.pass, text.cpu, text.old { stroke: none }
</style>
<rect width="100%" height="100%" fill="var(--paper)"/>
{{range .Panels}}{{$p := .}}<g>
<text class="title" x="{{.Left}}" y="28">{{.Title}}</text>
{{range .Y}}<line class="grid" x1="{{$p.Left}}" x2="{{$p.Right}}" y1="{{printf "%.1f" .At}}" y2="{{printf "%.1f" .At}}"/><text class="axis" x="{{$p.Left}}" dx="-8" y="{{printf "%.1f" .At}}" dy="4" text-anchor="end">{{.Text}}</text>
{{end}}{{range .X}}<line class="grid" x1="{{printf "%.1f" .At}}" x2="{{printf "%.1f" .At}}" y1="{{$p.Top}}" y2="{{$p.Bottom}}"/><text class="axis" x="{{printf "%.1f" .At}}" y="{{$p.Bottom}}" dy="20" text-anchor="middle">{{.Text}}</text>
{{end}}<text class="axis" x="{{.Right}}" y="{{.Bottom}}" dy="42" text-anchor="end">nodes</text>
{{range .Lines}}<polyline class="{{.Class}}" points="{{.Points}}"/>{{$l := .}}{{range .Dots}}<circle class="{{$l.Class}}" cx="{{printf "%.1f" .X}}" cy="{{printf "%.1f" .Y}}" r="3.5"><title>{{.Title}}</title></circle>{{end}}
<text class="{{.Class}}" x="{{.LabelX}}" y="{{printf "%.1f" .LabelY}}" dy="4">{{.Label}}</text>
{{end}}</g>
{{end}}</svg>
`))
