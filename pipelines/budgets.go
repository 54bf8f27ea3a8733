package pipelines

import (
	"fmt"
	"sync"
	"time"

	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/pipelines/checkpoint"
	"github.com/formetl/formetl/pipelines/definition"
)

// Budgets are those of a process that works for many definitions or forms side by side. What
// has the same account, state and limits shares a Budget, so that one write of the ledger is for
// all of them. The zero value is empty.
type Budgets struct {
	mu   sync.Mutex
	open map[string]*sharedBudget
}

// Shared returns the budget of a definition's account, see newBudget. A nil Budgets shares nothing.
func (all *Budgets) Shared(def *definition.Definition, state checkpoint.State, now func() time.Time, waits func(perMinute int, until time.Time)) transport.Budget {
	if all == nil {
		return newBudget(def, state, now, waits)
	}
	key := fmt.Sprint(state.Place, "\n", ledgerOf(def, state).name, limitsOf(def, state))
	all.mu.Lock()
	defer all.mu.Unlock()
	b := all.open[key]
	if b == nil {
		var ok bool
		if b, ok = newBudget(def, state, now, waits).(*sharedBudget); !ok {
			return nil
		}
		if all.open == nil {
			all.open = map[string]*sharedBudget{}
		}
		all.open[key] = b
	}
	b.users++
	return &use{b, sync.OnceFunc(func() { all.leave(key, b) })}
}

// leave closes a Budget that nobody uses any more.
func (all *Budgets) leave(key string, b *sharedBudget) {
	all.mu.Lock()
	b.users--
	last := b.users == 0
	if last {
		delete(all.open, key)
	}
	all.mu.Unlock()
	if last {
		b.Close()
	}
}

// use is one use of a Budget.
type use struct {
	*sharedBudget
	close func()
}

// Close ends this use.
func (u *use) Close() { u.close() }
