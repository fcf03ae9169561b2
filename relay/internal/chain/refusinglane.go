package chain

import (
	"github.com/relaypool/relaypool/relay/internal/outbound"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/rpc"
)

// LaneUsable reports whether the lane with that name may be sent transactions: it has not just
// refused, or failed to answer, several in a row.
func (e *Endpoints) LaneUsable(name string) bool {
	lane := e.lane(name)
	return lane != nil && (lane.breaker.State() == outbound.Closed || lane.breaker.Next() <= 0)
}

// refusalAsFailure makes a lane's refusal, such as of a tip that is too low, count as a failed call:
// a lane that takes nothing is of no use.
func refusalAsFailure(lane string, err error) error {
	if rpc.ClassOf(err) == "refused" {
		return &onchain.Unavailable{Method: methodSend, Endpoint: lane, Kind: onchain.KindRejected, Detail: err.Error()}
	}
	return err
}
