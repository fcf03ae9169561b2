package report

import (
	"fmt"

	"github.com/relaypool/relaypool/hack/drill/arena"
	"github.com/relaypool/relaypool/hack/drill/verify"
)

// orderlyExits checks that relays ended only by a kill, or in time after a signal.
func orderlyExits(exits []arena.Exit) verify.Result {
	result := verify.Result{Name: "orderly-exits", Claim: "a relay that gets a stop signal exits in time, and none exits without one while its database is reachable", Examined: len(exits)}
	for _, e := range exits {
		if e.Fault != "" {
			result.Faults = append(result.Faults, fmt.Sprintf("relay %d at %s: %s", e.Relay+1, e.At.UTC().Format("15:04:05"), e.Fault))
		}
	}
	return result
}
