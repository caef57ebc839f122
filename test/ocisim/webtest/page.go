// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package webtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// Page is a tab of the browser.
type Page struct {
	browser *Browser
	target  string
	session string

	mu       sync.Mutex
	problems []string // exceptions, and what the page or the browser logged as an error
	requests []string // addresses that were asked for
}

// object is a JSON object of the protocol.
type object = map[string]any

// Open opens a tab with an address.
func (b *Browser) Open(ctx context.Context, address string) (*Page, error) {
	var target struct {
		ID string `json:"targetId"`
	}
	if err := b.call(ctx, "", "Target.createTarget", object{"url": "about:blank"}, &target); err != nil {
		return nil, err
	}
	var attached struct {
		Session string `json:"sessionId"`
	}
	if err := b.call(ctx, "", "Target.attachToTarget", object{"targetId": target.ID, "flatten": true}, &attached); err != nil {
		return nil, err
	}
	p := &Page{browser: b, target: target.ID, session: attached.Session}
	b.mu.Lock()
	b.pages[p.session] = p
	b.mu.Unlock()
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		if err := p.call(ctx, domain+".enable", object{}, nil); err != nil {
			return nil, err
		}
	}
	return p, p.Navigate(ctx, address)
}

// Close closes the tab.
func (p *Page) Close(ctx context.Context) error {
	p.browser.mu.Lock()
	delete(p.browser.pages, p.session)
	p.browser.mu.Unlock()
	return p.browser.call(ctx, "", "Target.closeTarget", object{"targetId": p.target}, nil)
}

func (p *Page) call(ctx context.Context, method string, params, into any) error {
	return p.browser.call(ctx, p.session, method, params, into)
}

// event keeps what the page complains about.
func (p *Page) event(m message) {
	var e struct {
		Type    string `json:"type"`
		Details struct {
			Text      string `json:"text"`
			Exception struct {
				Description string `json:"description"`
			} `json:"exception"`
		} `json:"exceptionDetails"`
		Entry struct {
			Level, Source, Text, URL string
		} `json:"entry"`
		Request struct {
			URL string `json:"url"`
		} `json:"request"`
		Args []struct {
			Value       any    `json:"value"`
			Description string `json:"description"`
		} `json:"args"`
	}
	if json.Unmarshal(m.Params, &e) != nil {
		return
	}
	var problem string
	switch {
	case m.Method == "Network.requestWillBeSent":
		p.mu.Lock()
		defer p.mu.Unlock()
		p.requests = append(p.requests, e.Request.URL)
		return
	case m.Method == "Runtime.exceptionThrown":
		problem = e.Details.Text + " " + e.Details.Exception.Description
	case m.Method == "Log.entryAdded" && e.Entry.Level == "error":
		problem = e.Entry.Source + ": " + e.Entry.Text + " " + e.Entry.URL
	case m.Method == "Runtime.consoleAPICalled" && e.Type == "error":
		problem = fmt.Sprint("console: ", e.Args)
	case m.Method == "Page.javascriptDialogOpening":
		problem = "a dialog opened: " + string(m.Params)
	default:
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.problems = append(p.problems, strings.TrimSpace(problem))
}

// Problems returns what went wrong in the page since the last time: exceptions, logged errors, violated policies.
func (p *Page) Problems() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	problems := p.problems
	p.problems = nil
	return problems
}

// Requests returns the addresses that the page asked for so far.
func (p *Page) Requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.requests)
}

// Navigate loads an address.
func (p *Page) Navigate(ctx context.Context, address string) error {
	var result struct {
		ErrorText string `json:"errorText"`
	}
	if err := p.call(ctx, "Page.navigate", object{"url": address}, &result); err != nil {
		return err
	}
	if result.ErrorText != "" {
		return fmt.Errorf("open %s: %s", address, result.ErrorText)
	}
	return nil
}

// Size sets the size of the window in CSS pixels.
func (p *Page) Size(ctx context.Context, width, height int) error {
	return p.call(ctx, "Emulation.setDeviceMetricsOverride", object{
		"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600,
	}, nil)
}

// Dark makes the page believe that the user prefers dark colours, or light ones.
func (p *Page) Dark(ctx context.Context, dark bool) error {
	value := "light"
	if dark {
		value = "dark"
	}
	return p.call(ctx, "Emulation.setEmulatedMedia", object{"features": []object{{"name": "prefers-color-scheme", "value": value}}}, nil)
}

// Evaluate runs an expression in the page and decodes its value, if into is not nil. It waits for promises.
func (p *Page) Evaluate(ctx context.Context, expression string, into any) error {
	var result struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		Exception *struct {
			Text      string `json:"text"`
			Exception struct {
				Description string `json:"description"`
			} `json:"exception"`
		} `json:"exceptionDetails"`
	}
	params := object{"expression": expression, "returnByValue": true, "awaitPromise": true}
	if err := p.call(ctx, "Runtime.evaluate", params, &result); err != nil {
		return err
	}
	if e := result.Exception; e != nil {
		return fmt.Errorf("%s: %s %s", expression, e.Text, e.Exception.Description)
	}
	if into == nil || len(result.Result.Value) == 0 {
		return nil
	}
	if err := json.Unmarshal(result.Result.Value, into); err != nil {
		return fmt.Errorf("%s: %w", expression, err)
	}
	return nil
}

// lookEvery is how often Wait looks.
const lookEvery = 50 * time.Millisecond

// Wait looks until an expression is true.
func (p *Page) Wait(ctx context.Context, expression string) error {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		var met bool
		err := p.Evaluate(ctx, "Boolean("+expression+")", &met)
		if err == nil && met {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", expression, errors.Join(ctx.Err(), err))
		}
	}
}

// Click presses the mouse in the middle of the first element that a CSS selector finds.
func (p *Page) Click(ctx context.Context, selector string) error {
	quoted, err := json.Marshal(selector)
	if err != nil {
		return err
	}
	if err := p.Wait(ctx, fmt.Sprintf("document.querySelector(%s)", quoted)); err != nil {
		return err
	}
	var at struct{ X, Y float64 }
	err = p.Evaluate(ctx, fmt.Sprintf(`(() => {
		const element = document.querySelector(%s);
		element.scrollIntoView({ block: 'center', behavior: 'instant' });
		const box = element.getBoundingClientRect();
		return { X: box.x + box.width / 2, Y: box.y + box.height / 2 };
	})()`, quoted), &at)
	if err != nil {
		return err
	}
	for _, kind := range []string{"mousePressed", "mouseReleased"} {
		event := object{"type": kind, "x": at.X, "y": at.Y, "button": "left", "clickCount": 1}
		if err := p.call(ctx, "Input.dispatchMouseEvent", event, nil); err != nil {
			return err
		}
	}
	return nil
}

// Type clicks a field and types a text into it.
func (p *Page) Type(ctx context.Context, selector, text string) error {
	if err := p.Click(ctx, selector); err != nil {
		return err
	}
	return p.call(ctx, "Input.insertText", object{"text": text}, nil)
}

// keys are the codes and texts of the keys that Press knows.
var keys = map[string]object{
	"Enter": {"code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"},
	"Tab":   {"code": "Tab", "windowsVirtualKeyCode": 9},
	" ":     {"code": "Space", "windowsVirtualKeyCode": 32, "text": " "},
}

// Press presses a key: "Enter", "Tab" or " ".
func (p *Page) Press(ctx context.Context, key string) error {
	for _, kind := range []string{"keyDown", "keyUp"} {
		event := object{"type": kind, "key": key}
		for name, value := range keys[key] {
			event[name] = value
		}
		if err := p.call(ctx, "Input.dispatchKeyEvent", event, nil); err != nil {
			return err
		}
	}
	return nil
}

// Screenshot writes a picture of the window, as PNG.
func (p *Page) Screenshot(ctx context.Context, path string) error {
	var picture struct {
		Data []byte `json:"data"`
	}
	if err := p.call(ctx, "Page.captureScreenshot", object{"format": "png"}, &picture); err != nil {
		return err
	}
	if err := os.WriteFile(path, picture.Data, 0o644); err != nil {
		return fmt.Errorf("screenshot: %w", err)
	}
	return nil
}
