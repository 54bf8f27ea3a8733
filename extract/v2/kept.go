package v2

import "context"

// kept holds what the service was asked for once, by key. Make it with newKept.
type kept[K comparable, V any] struct {
	token chan struct{} // taken by whoever asks or looks whether somebody did
	known map[K]V
}

func newKept[K comparable, V any]() kept[K, V] {
	return kept[K, V]{make(chan struct{}, 1), map[K]V{}}
}

// get returns the value of a key, and asks for it if nobody has. If that fails, the next
// call asks again.
func (k *kept[K, V]) get(ctx context.Context, key K, ask func() (V, error)) (none V, err error) {
	select {
	case k.token <- struct{}{}:
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
	defer func() { <-k.token }()
	if value, ok := k.known[key]; ok {
		return value, nil
	}
	value, err := ask()
	if err != nil {
		return none, err
	}
	k.known[key] = value
	return value, nil
}
