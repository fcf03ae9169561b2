package crowd

import (
	"context"
	"encoding/json"
	"time"

	"github.com/relaypool/relaypool/hack/load"
)

// lostPause is the pause after a request without an answer.
const lostPause = time.Second

// Insist is Flood for clients that repeat a request that is refused only for the moment, when its
// Retry-After has passed.
func (c *Crowd) Insist(ctx context.Context, clients int, ramp time.Duration, next Source) {
	c.each(ctx, clients, ramp, func(int) {
		for ctx.Err() == nil {
			body, ok := next()
			if !ok {
				return
			}
			for a := c.submit(ctx, body, ""); refusedForNow(a); a = c.submit(ctx, body, "") {
				pause := a.RetryAfter
				if a.Status == 0 {
					pause = lostPause
				}
				if !load.Sleep(ctx, pause) {
					return
				}
			}
		}
	})
}

// Forge returns a request with the proof of another.
func Forge(body, other []byte) ([]byte, error) {
	var request, from map[string]json.RawMessage
	if err := json.Unmarshal(body, &request); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(other, &from); err != nil {
		return nil, err
	}
	request["proof_bytes"] = from["proof_bytes"]
	return json.Marshal(request)
}
