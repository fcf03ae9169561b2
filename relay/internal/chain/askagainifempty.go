package chain

import (
	"context"
)

// secondOpinion defines which answers may come from a node that has lost its data, and how such
// an answer is combined with a second endpoint's.
type secondOpinion[T any] struct {
	doubtful func(T) bool
	// again asks the second endpoint.
	again   func(context.Context, askedEndpoint) (T, error)
	combine func(first, second T) T
}

// askAgain is like ask, but asks a second endpoint too when the answer is doubtful. If no second
// endpoint answers soon, askAgain returns the first answer.
func askAgain[T any](ctx context.Context, e *Endpoints, q query[T], d secondOpinion[T]) (T, error) {
	first, origin, err := askWithIndex(ctx, e, q)
	if err != nil || !d.doubtful(first) {
		return first, err
	}
	q.do = d.again
	for _, ep := range e.candidates(q.roles, q.method, q.urgency) {
		if ep.index == origin {
			continue
		}
		permit, ok := ep.breaker.Try()
		if !ok {
			continue
		}
		// The call gets only a short time, as if there were 2 endpoints left to ask.
		if second, err := attempt(ctx, e, ep, permit, q, 2); err == nil {
			return d.combine(first, second), nil
		}
	}
	return first, nil
}

// fewerMissing returns a function that chooses the reading with fewer missing values. If both miss
// equally many, it chooses the first one.
func fewerMissing[T any](missing func(T) bool) func(first, second slotted[[]T]) slotted[[]T] {
	count := func(values []T) (n int) {
		for _, v := range values {
			if missing(v) {
				n++
			}
		}
		return n
	}
	return func(first, second slotted[[]T]) slotted[[]T] {
		if count(second.value) < count(first.value) {
			return second
		}
		return first
	}
}
