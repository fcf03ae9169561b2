package chain

import (
	"context"
	"time"

	"github.com/relaypool/relaypool/relay/rpc"
)

// RoleLane is the role of a lane: it accepts transactions that pay it a tip, and nothing else is
// ever asked of it. An endpoint with this role has no other one.
const RoleLane Role = "lane"

// laneTimeout bounds a send to a lane. It is short, because nobody waits for the answer.
const laneTimeout = 2 * time.Second

// SendLane sends signed bytes to the lane with that name, without waiting for the answer: no
// lane's answer proves anything. It sends nothing if no lane has the name, or if the lane is not
// usable. first is as for Send.
func (e *Endpoints) SendLane(ctx context.Context, name string, raw []byte, first bool) {
	lane := e.lane(name)
	if lane == nil {
		return
	}
	permit, ok := lane.breaker.Try()
	if !ok {
		return
	}
	uncancelled := context.WithoutCancel(ctx)
	e.sends.run(func() {
		limited, cancel := context.WithTimeoutCause(uncancelled, laneTimeout, rpc.ErrLimit)
		defer cancel()
		start := e.now()
		err := refusalAsFailure(lane.name, e.callSend(limited, lane, raw, false, first, 0))
		e.recordResult(lane, permit, methodSend, e.now().Sub(start), 0, err)
	})
}

func (e *Endpoints) lane(name string) *endpoint {
	for _, lane := range e.lanes {
		if lane.name == name {
			return lane
		}
	}
	return nil
}
