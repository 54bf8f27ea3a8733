package transport

import (
	"context"
	"time"
)

// Attempt is one attempt of a request, as it ended.
type Attempt struct {
	Kind    Kind
	Number  int // within its request, from 1
	Start   time.Time
	Took    time.Duration
	Outcome string // from OutcomeOK to OutcomeCancelled
}

// observerKey is the key of a context's observer.
type observerKey struct{}

// Observe returns a context that lets f be told of each attempt when it has ended. f takes
// the place of an observer that ctx has. It is called from several goroutines.
func Observe(ctx context.Context, f func(Attempt)) context.Context {
	return context.WithValue(ctx, observerKey{}, f)
}

// observed tells the observer of ctx, if there is one.
func observed(ctx context.Context, a Attempt) {
	if f, ok := ctx.Value(observerKey{}).(func(Attempt)); ok {
		f(a)
	}
}
