// Copyright The OCI Cloud Controller Manager Authors
// SPDX-License-Identifier: Apache-2.0

package firewall

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// book holds what owners need, as far as they have said so. All of it is lost with the process.
type book struct {
	mu       sync.Mutex
	accounts map[string]*account
	// uses counts by target how many accounts need a rule, and legacy how many have it as Claim.Legacy.
	uses, legacy map[Target]map[Rule]int
	// known are all rules that were ever claimed. It is kept only where rules of ours cannot be told from those of other
	// clusters, because the cluster has no identity.
	known map[Target]ruleSet
}

// account is what one owner needs.
type account struct {
	// settled means that needs is all that the owner needs, besides opened.
	settled   bool
	needs     needs
	opened    needs // what the owner has opened since it last settled
	legacy    needs
	inherited bool // see Claim
	// touched are the targets that the owner may have had rules on.
	touched map[Target]struct{}
}

func newBook(remember bool) *book {
	b := &book{accounts: map[string]*account{}, uses: map[Target]map[Rule]int{}, legacy: map[Target]map[Rule]int{}}
	if remember {
		b.known = map[Target]ruleSet{}
	}
	return b
}

// contributes says whether a need of the account is counted.
func (a *account) contributes(t Target, r Rule) bool { return a.needs[t].has(r) || a.opened[t].has(r) }

// open adds to what an owner needs.
func (b *book) open(owner string, n needs) {
	b.update(owner, func(a *account) {
		for t, rules := range n {
			if a.opened[t] == nil {
				a.opened[t] = ruleSet{}
			}
			maps.Copy(a.opened[t], rules)
		}
		a.touch(n)
	})
	b.remember(n)
}

// settle replaces what an owner needs, and returns the targets that it has, or may have had, rules on.
func (b *book) settle(owner string, n, legacy needs) []Target {
	b.remember(n)
	var targets []Target
	b.update(owner, func(a *account) {
		a.settled, a.needs, a.opened = true, n, needs{}
		for t, rules := range legacy {
			if a.legacy[t] == nil {
				a.legacy[t] = ruleSet{}
			}
			maps.Copy(a.legacy[t], rules)
		}
		a.touch(n)
		a.touch(legacy)
		targets = slices.SortedFunc(maps.Keys(a.touched), compareTargets)
	})
	return targets
}

// inherit notes Claim.Inherited.
func (b *book) inherit(owner string, inherited bool) {
	b.update(owner, func(a *account) { a.inherited = inherited })
}

// touched returns the targets that an owner has, or may have had, rules on.
func (b *book) touched(owner string) []Target {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.accounts[owner]
	if a == nil {
		return nil
	}
	return slices.Collect(maps.Keys(a.touched))
}

// untouch notes that an owner has no rules on a target, unless it needs some there.
func (b *book) untouch(owner string, t Target) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a := b.accounts[owner]; a != nil && len(a.needs[t])+len(a.opened[t]) == 0 {
		delete(a.touched, t)
	}
}

// forget drops a target that does not exist any more.
func (b *book) forget(t Target) {
	b.mu.Lock()
	owners := slices.Collect(maps.Keys(b.accounts))
	b.mu.Unlock()
	for _, owner := range owners {
		b.update(owner, func(a *account) {
			delete(a.needs, t)
			delete(a.opened, t)
			delete(a.legacy, t)
			delete(a.touched, t)
		})
	}
}

// owners returns all that have an account.
func (b *book) owners() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Keys(b.accounts))
}

// close drops an account.
func (b *book) close(owner string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a := b.accounts[owner]; a != nil {
		b.count(a, -1)
		delete(b.accounts, owner)
	}
}

// update changes an account and keeps the counts right.
func (b *book) update(owner string, change func(*account)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.accounts[owner]
	if a == nil {
		a = &account{needs: needs{}, opened: needs{}, legacy: needs{}, touched: map[Target]struct{}{}}
		b.accounts[owner] = a
	}
	b.count(a, -1)
	change(a)
	b.count(a, 1)
}

// count adds an account to the counts, or takes it out. The caller holds the lock.
func (b *book) count(a *account, delta int) {
	for t, rules := range a.needs {
		for r := range rules {
			add(b.uses, t, r, delta)
		}
	}
	for t, rules := range a.opened {
		for r := range rules {
			if !a.needs[t].has(r) {
				add(b.uses, t, r, delta)
			}
		}
	}
	for t, rules := range a.legacy {
		for r := range rules {
			add(b.legacy, t, r, delta)
		}
	}
}

func add(counts map[Target]map[Rule]int, t Target, r Rule, delta int) {
	if counts[t] == nil {
		counts[t] = map[Rule]int{}
	}
	counts[t][r] += delta
	if counts[t][r] == 0 {
		delete(counts[t], r)
	}
}

func (b *book) remember(n needs) {
	if b.known == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for t, rules := range n {
		if b.known[t] == nil {
			b.known[t] = ruleSet{}
		}
		maps.Copy(b.known[t], rules)
	}
}

func (a *account) touch(n needs) {
	for t := range n {
		a.touched[t] = struct{}{}
	}
}

// rollLasts is how long it is remembered which owners there are. An owner that appears meanwhile has no rules from before
// that could be taken for stale, and those that it claims are in the book.
const rollLasts = 5 * time.Second

// roll is the list of owners. It is kept for a while because owners find out what they may need only when they are asked,
// for each rule that nobody is known to need: after a start that is most rules and most owners.
type roll struct {
	call func() []Owner // nil: nobody

	mu     sync.Mutex
	at     time.Time
	owners []Owner
}

// get returns the owners as they were a moment ago.
func (r *roll) get() []Owner {
	r.mu.Lock()
	fresh := !r.at.IsZero() && time.Since(r.at) < rollLasts
	owners := r.owners
	r.mu.Unlock()
	if fresh {
		return owners
	}
	return r.refresh()
}

// refresh returns the owners as they are now.
func (r *roll) refresh() []Owner {
	if r.call == nil {
		return nil
	}
	at := time.Now()
	owners := r.call()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !at.Before(r.at) {
		r.at, r.owners = at, owners
	}
	return owners
}
