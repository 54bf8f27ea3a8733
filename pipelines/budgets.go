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
	open map[string]*member
}

// member is a Budget and how many use it.
type member struct {
	*sharedBudget
	users int
}

// Shared returns the budget of a definition's account, see newBudget. A nil Budgets shares nothing.
func (all *Budgets) Shared(def *definition.Definition, state checkpoint.State, now func() time.Time, waits func(perMinute int, until time.Time)) transport.Budget {
	if all == nil {
		return newBudget(def, state, now, waits)
	}
	key := fmt.Sprint(state.Place, "\n", ledgerOf(def, state).name, limitsOf(def, state))
	all.mu.Lock()
	defer all.mu.Unlock()
	m := all.open[key]
	if m == nil {
		b, ok := newBudget(def, state, now, waits).(*sharedBudget)
		if !ok {
			return nil
		}
		m = &member{sharedBudget: b}
		if all.open == nil {
			all.open = map[string]*member{}
		}
		all.open[key] = m
	}
	m.users++
	return &use{m, sync.OnceFunc(func() { all.leave(key, m) })}
}

// leave closes a Budget that nobody uses any more.
func (all *Budgets) leave(key string, m *member) {
	all.mu.Lock()
	m.users--
	last := m.users == 0
	if last {
		delete(all.open, key)
	}
	all.mu.Unlock()
	if last {
		m.Close()
	}
}

// use is one use of a Budget.
type use struct {
	*member
	close func()
}

// Close ends this use.
func (u *use) Close() { u.close() }
