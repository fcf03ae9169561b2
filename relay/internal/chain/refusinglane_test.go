package chain

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/gagliardetto/solana-go"
)

func TestALaneThatTakesNothingIsNotUsable(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]reply{
		"it fails":                   {status: 500},
		"it refuses its key":         {status: 401},
		"it wants a higher tip":      errorReply(`{"code":-32602,"message":"tip too low"}`),
		"it asks for fewer requests": {status: 429},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork("a", "lane")
				endpoints := endpointsNamed("a", "lane")
				endpoints[1].Roles = []Role{RoleLane}
				e, _ := newEndpoints(t, n, endpoints, nil)
				send := func() {
					e.SendLane(t.Context(), "lane", raw, true)
					if err := e.Flush(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				if send(); !e.LaneUsable("lane") || e.LaneUsable("unknown") {
					t.Errorf("usable: the lane %t, want true; an unknown lane %t, want false", e.LaneUsable("lane"), e.LaneUsable("unknown"))
				}
				n["lane"].set("sendTransaction", answer)
				for range 10 {
					send()
				}
				if e.LaneUsable("lane") {
					t.Error("the lane is usable, want it not to be")
				}
				n["lane"].heal()
				n["lane"].set("sendTransaction", resultReply(`"`+solana.Signature{1}.String()+`"`))
				time.Sleep(time.Minute)
				if send(); !e.LaneUsable("lane") || n["lane"].count("sendTransaction") > 10 {
					t.Errorf("once it works again, the lane is usable: %t after %d sends, want true after at most 10", e.LaneUsable("lane"), n["lane"].count("sendTransaction"))
				}
			})
		})
	}
}
