// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package webtest_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/oracle/oci-cloud-controller-manager/test/ocisim"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/server"
	"github.com/oracle/oci-cloud-controller-manager/test/ocisim/webtest"
)

// views are the addresses of all views, each with a text that the test's world brings there.
var views = map[string]string{
	"":          "Security lists and groups",
	"calls":     "ListInstances",
	"faults":    "Everything works, and everything is allowed.",
	"balancers": "203.0.113.10",
	"instances": "bastion",
	"volumes":   "There are no volumes",
	"files":     "nfs - export set",
	"network":   "10.0.0.0/16",
	"security":  "node ports, from the load balancers",
	"rest":      "VNIC attachments",
}

// TestPage needs a browser: make test-web installs one where it can.
func TestPage(t *testing.T) {
	path := webtest.Find()
	if path == "" {
		t.Skip("no Chromium is installed: make test-web installs one where it can")
	}
	browser, err := webtest.Start(path, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(browser.Close)
	for name, test := range map[string]func(*testing.T, *webtest.Browser){
		"Views":         testViews,
		"Phone":         testPhone,
		"Contrast":      testContrast,
		"LiveLog":       testLiveLog,
		"Filters":       testFilters,
		"Faults":        testFaults,
		"FaultForm":     testFaultForm,
		"Permissions":   testPermissions,
		"ActsAndHolds":  testActsAndHolds,
		"Clock":         testClock,
		"Restart":       testRestart,
		"Reset":         testReset,
		"Health":        testHealth,
		"HostileNames":  testHostileNames,
		"UpdatesGently": testUpdatesGently,
		"Keyboard":      testKeyboard,
		"LargeWorld":    testLargeWorld,
	} {
		t.Run(name, func(t *testing.T) { test(t, browser) })
	}
}

const world = "testdata/world.yaml"

func testViews(t *testing.T, b *webtest.Browser) {
	region := newRegion(t, world)
	listInstances(t, region)
	p := open(t, b, serve(t, region, "").AdminURL()+"/")
	for view, text := range views {
		p.view("#/" + view)
		p.sees(text)
		p.picture("desktop-" + view)
		unnamed := value[[]string](p, `[...document.querySelectorAll('input, select, button, a, summary')].filter((e) => {
			const label = e.labels?.[0]?.innerText || e.getAttribute('aria-label') || e.innerText;
			return !label?.trim();
		}).map((e) => e.outerHTML)`)
		if len(unnamed) > 0 {
			t.Errorf("view %q has controls without a name: %q", view, unnamed)
		}
		if twins := value[[]string](p, `[...document.querySelectorAll('[id]')].map((e) => e.id).filter((id, i, all) => all.indexOf(id) !== i)`); len(twins) > 0 {
			t.Errorf("view %q has several elements with the ids %q", view, twins)
		}
		if n := value[int](p, `document.querySelectorAll('h1').length`); n != 1 {
			t.Errorf("view %q has %d main headings", view, n)
		}
	}
	p.view("#/balancers")
	for _, text := range []string{"TCP 80, TCP 443", "8 backends in 2 sets", "checks HTTP /healthz on port 10256", "31443", "DRAIN", "BACKUP", "UDP 53"} {
		p.sees(text)
	}
	p.view("#/security")
	for _, text := range []string{"30000–32767", "type 3, code 4", "stateless", "from everywhere", "2001:db8::/56"} {
		p.sees(text)
	}
	p.view("#/instances")
	p.click("[data-key^='instance/'] summary")
	p.sees("node-1 (primary)")
	p.wait("[...document.querySelectorAll('.item td a')].some((e) => e.innerText === 'nodes')")
	p.view("#/rest")
	p.click("[data-key='rest/VNIC attachment'] summary")
	p.click("[data-key^='VNIC attachment/'] summary")
	p.sees("VNIC")
	for _, address := range p.Requests() {
		if !strings.HasPrefix(address, value[string](p, "location.origin")) {
			t.Errorf("the page asked for %s, which is elsewhere", address)
		}
	}
}

func testPhone(t *testing.T, b *webtest.Browser) {
	region := newRegion(t, world)
	listInstances(t, region)
	createBalancer(t, region, strings.Repeat("a-very-long-name-without-any-space-", 7))
	region.Fault(ocisim.Fault{Operation: "GetInstance", Resource: "ocid1.instance.oc1.iad." + strings.Repeat("a", 60), Status: 500})
	p := open(t, b, serve(t, region, "").AdminURL()+"/")
	p.size(390, 844)
	for view, text := range views {
		if view == "faults" {
			text = "GetInstance"
		}
		p.view("#/" + view)
		p.sees(text)
		p.picture("phone-" + view)
		p.run(`(async () => {
			for (let i = 0; i < 8; i += 1) { // what opens brings more that can be opened
				const closed = [...document.querySelectorAll('main details:not([open]) > summary')].slice(0, 12);
				if (closed.length === 0) break;
				for (const summary of closed) summary.click();
				await new Promise((done) => setTimeout(done, 150));
			}
		})()`)
		p.picture("phone-open-" + view)
		if width := value[int](p, "Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)"); width > 390 {
			t.Errorf("view %q is %d pixels wide on a screen of 390", view, width)
		}
	}
}

// contrast finds texts whose contrast with what is behind them is below 4.5 to 1, the AA level of WCAG 2.
const contrast = `(() => {
	const rgba = (text) => { const n = text.match(/[\d.]+/g).map(Number); return n.length < 4 ? [...n, 1] : n; };
	const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
	const light = (c) => {
		const [r, g, b] = c.map((v) => { const s = v / 255; return s <= 0.03928 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4; });
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const behind = (e) => {
		const layers = [];
		for (; e; e = e.parentElement) layers.push(rgba(getComputedStyle(e).backgroundColor));
		return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1]);
	};
	const poor = [];
	for (const e of document.querySelectorAll('body *')) {
		const text = [...e.childNodes].filter((n) => n.nodeType === 3).map((n) => n.data).join('').trim();
		if (!text || e.closest('noscript, datalist') || !e.checkVisibility()) continue;
		const back = behind(e);
		const a = light(over(rgba(getComputedStyle(e).color), back));
		const b = light(back);
		const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
		if (ratio < 4.5) poor.push(ratio.toFixed(2) + ' ' + text.slice(0, 40));
	}
	return poor;
})()`

func testContrast(t *testing.T, b *webtest.Browser) {
	region := newRegion(t, world)
	listInstances(t, region)
	p := open(t, b, serve(t, region, "").AdminURL()+"/")
	p.view("#/faults")
	p.click("[data-preset='Fail the next write with 500']")
	p.sees("every write")
	createBalancer(t, region, "refused")
	for view, text := range views {
		if view == "faults" {
			text = "500 for a write"
		}
		p.view("#/" + view)
		p.sees(text)
		for scheme, dark := range map[string]bool{"dark": true, "light": false} {
			p.dark(dark)
			p.picture(scheme + "-" + view)
			if poor := value[[]string](p, contrast); len(poor) > 0 {
				t.Errorf("view %q in %s colours has texts of little contrast: %q", view, scheme, poor)
			}
		}
	}
}

func testLiveLog(t *testing.T, b *webtest.Browser) {
	region := newRegion(t, world)
	p := open(t, b, serve(t, region, "").AdminURL()+"/#/calls")
	p.sees("No call yet.")
	createBalancer(t, region, "first")
	p.sees("CreateLoadBalancer")
	p.wait("document.querySelector('#nav [aria-current] .count').innerText === '1'")

	p.click("[data-do=pause]")
	p.sees("Paused.")
	listInstances(t, region)
	p.sees("The log has gone on by 1 call.")
	if n := value[int](p, "document.querySelectorAll('.log .item').length"); n != 1 {
		t.Errorf("%d calls are shown while the log is paused, want 1", n)
	}
	p.click("[data-do=follow]")
	p.sees("ListInstances")

	region.Fault(ocisim.Fault{Operation: "ListInstances", Status: 503, Times: 1, Note: "down for a moment"})
	listInstances(t, region)
	p.wait("document.querySelector('.log .item .mark.fault')")
	p.click(".log .item summary")
	p.sees("down for a moment")
	p.sees("ServiceUnavailable")
	p.sees(region.CallsBefore(0, 1)[0].RequestID)
	listInstances(t, region)
	p.sees("New calls wait while you read.")
	p.picture("call-details")

	p.click("#counters summary")
	p.wait(`[...document.querySelectorAll('#counters tr')].some((row) => /compute.ListInstances\s*3/.test(row.innerText))`)
	p.click("[data-do=reset-counters]")
	p.sees("No call yet.")
}

func testFilters(t *testing.T, b *webtest.Browser) {
	region := newRegion(t, world)
	p := open(t, b, serve(t, region, "").AdminURL()+"/#/calls")
	createBalancer(t, region, "first")
	listInstances(t, region)
	call(t, region, http.MethodGet, "/20160918/instances/ocid1.instance.oc1.iad.nosuch", nil)
	p.sees("GetInstance")
	rows := func(want ...string) {
		t.Helper()
		p.wait(fmt.Sprintf(`[...document.querySelectorAll('.log .name')].map((e) => e.firstChild.lastChild.data).join() === %q`, strings.Join(want, ",")))
	}
	rows("GetInstance", "ListInstances", "CreateLoadBalancer")
	p.fill("#f-operation", "instance")
	rows("GetInstance", "ListInstances")
	p.click("[name=writes]")
	p.sees("No call matches.")
	p.click("[name=writes]")
	rows("GetInstance", "ListInstances")
	p.run(`{ const s = document.getElementById('f-status'); s.value = 'errors'; s.dispatchEvent(new Event('change', { bubbles: true })); }`)
	rows("GetInstance")
	if hash := value[string](p, "location.hash"); hash != "#/calls?operation=instance&status=errors" {
		t.Errorf("the address is %s, which does not say what is shown", hash)
	}
	listInstances(t, region)
	call(t, region, http.MethodGet, "/20160918/instances/ocid1.instance.oc1.iad.another", nil)
	rows("GetInstance", "GetInstance")
	p.view("#/calls?text=another")
	rows("GetInstance")
	p.wait("document.getElementById('f-text').value === 'another' && document.getElementById('f-operation').value === ''")
}

func testFaults(t *testing.T, b *webtest.Browser) {
	region := newRegion(t, world)
	p := open(t, b, serve(t, region, "").AdminURL()+"/#/faults")
	p.click("[data-preset='Throttle everything']")
	p.sees("every call: it is answered 429 with Retry-After 2s")
	if status := listInstances(t, region); status != http.StatusTooManyRequests {
		t.Errorf("a read is answered %d while everything is throttled", status)
	}
	p.sees("struck 1 of 1 matching call")
	p.click("[data-path='/faults/1']")
	p.sees("Everything works, and everything is allowed.")
	if status := listInstances(t, region); status != http.StatusOK {
		t.Errorf("a read is answered %d after the fault was removed", status)
	}

	p.click("[data-preset='Lose the answer of the next create']")
	p.click("[data-preset='Fail the next work request']")
	p.sees("every work request, once: it fails with INTERNAL_ERROR")
	p.picture("faults")
	listInstances(t, region) // must not use anything up
	if status := createBalancer(t, region, "lost"); status != 0 {
		t.Errorf("a create is answered %d, its answer should be lost", status)
	}
	if n := len(region.LoadBalancers()); n != 3 {
		t.Errorf("there are %d load balancers, want 3: the create is applied", n)
	}
	p.wait("[...document.querySelectorAll('.in-force li')].filter((e) => e.innerText.startsWith('USED UP')).length === 2")
	region.Advance(5 * time.Minute)
	if last := region.LoadBalancers()[2].LifecycleState; last != "FAILED" {
		t.Errorf("the new load balancer is %s: its work request should have failed", last)
	}
	p.click("[data-path='/faults']")
	p.sees("Everything works, and everything is allowed.")
	if n := len(region.ArmedFaults()); n != 0 {
		t.Errorf("%d faults are left", n)
	}

	p.click("[data-preset='A budget of 2 calls per second']")
	p.sees("every call, above 2 per second and a burst of 4: it is answered 429")
	p.click("[data-do=remove]")
	p.sees("Everything works, and everything is allowed.")

	remove := region.Fault(ocisim.Fault{Operation: "GetVnic", Delay: time.Second})
	p.sees("made by the program that runs the simulator")
	remove()
	p.sees("Everything works, and everything is allowed.")
}

func testFaultForm(t *testing.T, b *webtest.Browser) {
	region := newRegion(t, world)
	p := open(t, b, serve(t, region, "").AdminURL()+"/#/faults?operation=compute.ListInstances")
	p.wait("document.getElementById('n-operation').value === 'compute.ListInstances'")
	p.wait("document.querySelectorAll('#operations option').length > 100")
	p.click("[data-do=add-fault] [type=submit]")
	p.wait("document.getElementById('news').innerText.includes('Say what happens')")
	p.fill("#n-nth", "2")
	p.fill("#n-times", "1")
	p.fill("#n-status", "409")
	p.fill("#n-code", "InvalidatedRetryToken")
	p.fill("#n-note", "by hand")
	p.press("Enter")
	p.sees("compute.ListInstances, from the 2nd one, once: it is answered 409 InvalidatedRetryToken")
	for i, want := range []int{http.StatusOK, http.StatusConflict, http.StatusOK} {
		if got := listInstances(t, region); got != want {
			t.Errorf("call %d is answered %d, want %d", i+1, got, want)
		}
	}
	p.sees("struck 1 of 3 matching calls · note “by hand”")
	p.fill("#n-delay", "soon")
	p.press("Enter")
	p.wait("document.getElementById('news').innerText.startsWith('400')")
	p.expected("status of 400")
}

func testPermissions(t *testing.T, b *webtest.Browser) {
	region := newRegion(t, world)
	p := open(t, b, serve(t, region, "").AdminURL()+"/#/faults")
	p.wait("document.querySelectorAll('#resource-types option').length > 5")
	p.fill("#d-type", "instances")
	p.click("[data-do=add-denial] [type=submit]")
	p.sees("inspect instances by anybody")
	if status := listInstances(t, region); status != http.StatusNotFound {
		t.Errorf("a list without the permission is answered %d", status)
	}
	p.click("[data-path='/denials/1']")
	p.sees("Everything works, and everything is allowed.")
	if status := listInstances(t, region); status != http.StatusOK {
		t.Errorf("a list is answered %d although the permission is back", status)
	}
}

func testActsAndHolds(t *testing.T, b *webtest.Browser) {
	region := newRegion(t, world)
	s := serve(t, region, "")
	p := open(t, b, s.AdminURL()+"/#/faults")
	node := *region.Instances()[0].Id
	act := fmt.Sprintf(`{"id": %q, "set": {"displayName": "renamed"}, "before": {"operation": "ListInstances", "nth": 1}}`, node)
	response, err := http.Post(s.AdminURL()+"/foreign", "application/json", strings.NewReader(act))
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	p.sees("changes " + node + ": {\"displayName\":\"renamed\"}, before ListInstances")
	listInstances(t, region)
	p.sees("done once")
	p.click("[data-path^='/foreign/']")
	p.sees("Everything works, and everything is allowed.")

	if _, err := s.StopAfter(server.StopRule{N: 1, Operations: []string{"ListInstances"}}); err != nil {
		t.Fatal(err)
	}
	p.sees("1st call of ListInstances, 0 seen")
	answered := make(chan int)
	go func() { answered <- listInstances(t, region) }()
	p.sees("compute.ListInstances is applied, its answer waits")
	p.click("[data-path^='/hooks/']")
	if status := <-answered; status != http.StatusOK {
		t.Errorf("the released call is answered %d", status)
	}
	p.sees("Everything works, and everything is allowed.")
}

func testClock(t *testing.T, b *webtest.Browser) {
	region := newRegion(t, world)
	createBalancer(t, region, "soon there")
	p := open(t, b, serve(t, region, "").AdminURL()+"/#/balancers")
	p.wait("document.querySelector('main').innerText.includes('CREATING')")
	p.click("[data-by='10m']")
	p.wait("document.getElementById('ahead').innerText === '(10m ahead)'")
	p.wait("!document.querySelector('main').innerText.includes('CREATING')")
	if ahead := time.Until(region.Now()); ahead < 9*time.Minute {
		t.Errorf("the region is %s ahead, want 10 minutes", ahead)
	}
}

func testRestart(t *testing.T, b *webtest.Browser) {
	first := serve(t, newRegion(t, world), "")
	p := open(t, b, first.AdminURL()+"/#/instances")
	p.sees("bastion")
	address := strings.TrimPrefix(first.AdminURL(), "http://")
	first.Close()
	p.wait("document.getElementById('connection').innerText === 'Connection lost'")
	p.wait("!document.getElementById('banner').hidden")
	p.sees("bastion")
	p.picture("connection-lost")

	region := newRegion(t, world)
	region.AddInstance(ocisim.Instance{Name: "after-the-restart"})
	serve(t, region, address)
	p.sees("after-the-restart")
	p.wait("document.getElementById('connection').innerText === 'Live' && document.getElementById('banner').hidden")
	p.expected("net::ERR_")
	p.view("#/calls")
	listInstances(t, region)
	p.sees("ListInstances")
}

func testReset(t *testing.T, b *webtest.Browser) {
	region := newRegion(t, world)
	for range 3 {
		listInstances(t, region)
	}
	p := open(t, b, serve(t, region, "").AdminURL()+"/#/calls")
	p.wait("document.querySelectorAll('.log .item').length === 3")
	region.Reset()
	for range 5 { // the numbers of the calls start again, and are past the last one that the page knows
		call(t, region, http.MethodGet, "/20160918/vcns?compartmentId="+region.Options().Tenancy, nil)
	}
	p.wait("document.querySelectorAll('.log .item').length === 5 && !document.querySelector('.log').innerText.includes('ListInstances')")
	p.view("#/instances")
	p.sees("There are no instances.")
}

func testHealth(t *testing.T, b *webtest.Browser) {
	region := newRegion(t, world)
	region.Advance(time.Hour) // the checks have had time
	p := open(t, b, serve(t, region, "").AdminURL()+"/#/balancers")
	badge := func(row string) string {
		return fmt.Sprintf("[...document.querySelectorAll('td')].find((e) => e.innerText === %s).parentElement.querySelector('.badge').innerText", quote(row))
	}
	p.sees("31443")
	p.wait(badge("10.0.10.2") + " === 'OK'")
	shop := *region.LoadBalancers()[0].Id
	if err := region.SetBackendHealth(shop, "TCP-443", "10.0.10.2:31443", ocisim.HealthCritical); err != nil {
		t.Fatal(err)
	}
	p.wait(badge("10.0.10.2") + " === 'CRITICAL'")
	p.wait("document.querySelector('.item .row').innerText.includes('WARNING')")
	p.picture("health")
}

// testHostileNames: the world has an instance whose name and tags are markup that would set window.hacked.
func testHostileNames(t *testing.T, b *webtest.Browser) {
	region := newRegion(t, world)
	p := open(t, b, serve(t, region, "").AdminURL()+"/#/instances")
	p.sees(`<img src=x onerror="window.hacked=1"><script>`)
	p.run(`[...document.querySelectorAll('.item summary')].find((e) => e.innerText.includes('<img')).click()`)
	p.sees(`"><svg onload=window.hacked=1> = </script><script>window.hacked=1</script>`)
	p.run(`[...document.querySelectorAll('.raw summary')].at(-1).click()`)
	p.wait("document.querySelector('pre').innerText.includes('onerror')")
	p.view("#/calls")
	call(t, region, http.MethodGet, "/20160918/instances/%3Cscript%3Ewindow.hacked=1%3C%2Fscript%3E?a=%3Cimg%20src=x%20onerror=window.hacked=1%3E", nil)
	p.wait("document.querySelectorAll('.log .item').length > 0")
	p.click(".log .item summary")
	p.view("#/faults?operation=%3Cimg%20src=x%20onerror=window.hacked=1%3E&resource=%22%3E%3Cscript%3Ewindow.hacked=1%3C/script%3E")
	p.wait("document.getElementById('n-operation').value.startsWith('<img')")
	region.Fault(ocisim.Fault{Operation: "<img src=x onerror=window.hacked=1>", Note: "<script>window.hacked=1</script>"})
	p.sees("“<script>window.hacked=1</script>”")
	p.run("new Promise((done) => setTimeout(done, 200))") // what was smuggled in would run now
	if value[bool](p, "'hacked' in window || document.querySelectorAll('script').length !== 1 || document.querySelectorAll('img').length !== 1 || document.querySelector('svg') !== null") {
		t.Error("text of the region became markup")
	}
	// The second line of defence: markup does nothing even where a page would put it in.
	refused := value[bool](p, `(() => { try { document.body.innerHTML = '<b>x</b>'; return false; } catch { return true; } })()`)
	if !refused {
		t.Error("the page's policy allows innerHTML")
	}
	p.expected("TrustedHTML", "trusted")
}

func testUpdatesGently(t *testing.T, b *webtest.Browser) {
	region := newRegion(t, world)
	region.AddInstance(ocisim.Instance{Name: "more-%d", Count: 40, VNIC: ocisim.VNIC{Subnet: "nodes"}})
	p := open(t, b, serve(t, region, "").AdminURL()+"/#/instances")
	p.sees("more-40")
	third := "[data-key='instance/" + *region.Instances()[2].Id + "']"
	p.click(third + " summary")
	p.wait("document.querySelector(" + quote(third) + ").open")
	p.run("document.querySelector(" + quote(third+" .links a") + ").focus(); window.scrollTo(0, 150)")
	before := value[float64](p, "window.scrollY")
	for i, instance := range region.Instances()[:2] {
		patch := fmt.Sprintf(`{"displayName": "renamed-%d"}`, i)
		if err := region.Foreign().Patch(*instance.Id, []byte(patch)); err != nil {
			t.Fatal(err)
		}
		p.sees(fmt.Sprintf("renamed-%d", i))
	}
	if err := region.Foreign().Delete(*region.Instances()[45].Id); err != nil {
		t.Fatal(err)
	}
	p.wait("!document.querySelector('main').innerText.includes('more-38')")
	if after := value[float64](p, "window.scrollY"); after != before {
		t.Errorf("the page scrolled from %v to %v", before, after)
	}
	if !value[bool](p, "document.querySelector("+quote(third)+").open && document.activeElement === document.querySelector("+quote(third+" .links a")+")") {
		t.Error("the open instance was closed, or lost the focus")
	}
	// What is typed survives, too.
	p.view("#/faults")
	p.fill("#n-message", "half a sent")
	region.Fault(ocisim.Fault{Operation: "GetVnic", Status: 500})
	p.sees("GetVnic")
	if got := value[string](p, "document.getElementById('n-message').value"); got != "half a sent" {
		t.Errorf("the field has %q after an update", got)
	}
}

func testKeyboard(t *testing.T, b *webtest.Browser) {
	region := newRegion(t, world)
	p := open(t, b, serve(t, region, "").AdminURL()+"/#/instances")
	p.sees("bastion")
	p.press("Tab")
	p.wait("document.activeElement.innerText === 'Skip to the content'")
	p.press("Enter")
	p.wait("document.activeElement.id === 'main'")
	p.press("Tab")
	p.wait("document.activeElement.id === 'text'")
	p.press("Tab") // the filter by state
	p.press(" ")
	p.wait("document.querySelectorAll('.item').length === 7")
	p.press("Tab")
	p.press("Tab")
	p.wait("document.activeElement.matches('summary')")
	p.press("Enter")
	p.sees("node-1 (primary)")
	p.press(" ")
	p.wait("!document.querySelector('.item').open")
	if value[bool](p, `getComputedStyle(document.activeElement).outlineStyle === 'none'`) {
		t.Error("the element that has the focus does not show it")
	}
}

func testLargeWorld(t *testing.T, b *webtest.Browser) {
	region := newRegion(t, world)
	err := region.Seed(ocisim.World{
		Subnets:   []ocisim.Subnet{{Name: "large", CIDR: "10.0.128.0/17"}},
		Instances: []ocisim.Instance{{Name: "worker-%d", Count: 5000, VNIC: ocisim.VNIC{Subnet: "large"}}},
		LoadBalancers: []ocisim.LoadBalancer{{
			Name: "tenant-%d", Count: 2000, Subnets: []string{"large"},
			BackendSets: []ocisim.BackendSet{{Name: "web", Backends: []ocisim.Backend{{Address: "10.0.128.2", Port: 80}}}},
			Listeners:   []ocisim.Listener{{Port: 80}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	p := open(t, b, serve(t, region, "").AdminURL()+"/#/instances")
	p.sees("50 of 5,008 are shown.")
	p.click("[data-do=more]")
	p.sees("200 of 5,008 are shown.")
	p.fill("#text", "worker-4321")
	p.wait("document.querySelectorAll('.item').length === 1")
	p.sees("worker-4321")
	p.view("#/balancers")
	p.sees("50 of 2,002 are shown.")
	p.view("#/calls")
	p.sees("No call yet.")
	for range 5000 {
		call(t, region, http.MethodGet, "/20160918/instances/ocid1.instance.oc1.iad.nosuch", nil)
	}
	createBalancer(t, region, "after all these")
	p.sees("CreateLoadBalancer")
	shown := value[int](p, "document.querySelectorAll('.log .item').length")
	if shown > 1000 {
		t.Errorf("%d calls are shown before anybody asked for more", shown)
	}
	p.click("[data-do=older]")
	p.wait(fmt.Sprintf("document.querySelectorAll('.log .item').length === %d", shown+200))
	if n := value[int](p, "document.querySelectorAll('*').length"); n > 20000 {
		t.Errorf("the page has %d elements", n)
	}
}
