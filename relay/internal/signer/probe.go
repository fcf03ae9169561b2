package signer

import (
	"context"
	"time"
)

// probeMessage is what a probe has signed. Its first byte would be 114 signatures of a legacy
// transaction, so that it is no part of one.
var probeMessage = []byte("relaypool: does this signer sign?")

// probePoll is how often Run looks whether a probe is due.
const probePoll = 100 * time.Millisecond

// Run probes the service with a harmless message while it is not available, so that no submission
// has to find out whether it signs again. It returns when ctx ends.
func (s *Signer) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(probePoll):
		}
		if !s.Available() && s.breaker.Next() == 0 {
			_, _ = s.Sign(ctx, probeMessage) // the breaker keeps the outcome
		}
	}
}
