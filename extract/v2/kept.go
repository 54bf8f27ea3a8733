package v2

import (
	"context"
	"sync"
)

// kept holds what the service was asked for once, by key. The zero value is empty.
type kept[K comparable, V any] struct {
	mu    sync.Mutex
	asked map[K]*turn[V]
}

// turn holds one token, which is taken by whoever asks or looks whether somebody did.
type turn[V any] struct {
	token chan struct{}
	known bool
	value V
}

// get returns the value of a key, and asks for it if nobody has. If that fails, the next
// call asks again.
func (k *kept[K, V]) get(ctx context.Context, key K, ask func() (V, error)) (none V, err error) {
	k.mu.Lock()
	if k.asked == nil {
		k.asked = map[K]*turn[V]{}
	}
	t := k.asked[key]
	if t == nil {
		t = &turn[V]{token: make(chan struct{}, 1)}
		k.asked[key] = t
	}
	k.mu.Unlock()
	select {
	case t.token <- struct{}{}:
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
	defer func() { <-t.token }()
	if t.known {
		return t.value, nil
	}
	value, err := ask()
	if err != nil {
		return none, err
	}
	t.value, t.known = value, true
	return value, nil
}
