package signer

import (
	"context"
	"time"
)

// probeMessage is what a probe has signed. As a transaction's message its first byte, r, would require
// 114 signatures, more than fit into a transaction. So the probe's signature is of no use for any.
var probeMessage = []byte("relaypool: does this signer sign?")

// probePoll is the interval at which Run checks whether a probe is due.
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
