package loadtest

import (
	"context"
	"maps"
	"slices"

	"github.com/formetl/formetl/load"
)

// drop removes an upload, whether it is prepared or not.
func (p *place) drop(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.staged, id)
	delete(p.begun, id)
}

// Leftovers gives the uploads that were neither committed nor aborted.
func (m *Memory) Leftovers(ctx context.Context) ([]load.Leftover, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.place.mu.Lock()
	defer m.place.mu.Unlock()
	var found []load.Leftover
	for _, id := range slices.Sorted(maps.Keys(m.place.begun)) {
		found = append(found, m.place.begun[id])
	}
	return found, nil
}

// Remove removes an upload.
func (m *Memory) Remove(ctx context.Context, l load.Leftover) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.place.drop(l.Ref)
	return nil
}

// Holders gives the leases that are held.
func (m *Memory) Holders(ctx context.Context) ([]load.ScopedHolder, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.place.mu.Lock()
	defer m.place.mu.Unlock()
	var held []load.ScopedHolder
	for _, scope := range slices.Sorted(maps.Keys(m.place.leases)) {
		held = append(held, load.ScopedHolder{Scope: scope, Holder: m.place.leases[scope]})
	}
	return held, nil
}
