package rpc

import (
	"testing"
	"time"

	"github.com/relaypool/relaypool/relay/onchain"
)

func TestSlotDurationAveragesTheSamples(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		result string
		want   time.Duration // 0 for no answer
	}{
		"slots of 200 ms":               {`[{"numSlots":300,"samplePeriodSecs":60},{"numSlots":300,"samplePeriodSecs":60}]`, 200 * time.Millisecond},
		"a change from 400 to 200 ms":   {`[{"numSlots":300,"samplePeriodSecs":60},{"numSlots":150,"samplePeriodSecs":60}]`, 120 * time.Second / 450},
		"a node that has just started":  {`[]`, 0},
		"a chain that stands still":     {`[{"numSlots":0,"samplePeriodSecs":60}]`, 0},
		"slots of a year":               {`[{"numSlots":1,"samplePeriodSecs":31536000}]`, 0},
		"more slots than any chain has": {`[{"numSlots":10000000,"samplePeriodSecs":1}]`, 0},
		"something else":                {`{}`, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := newClient(t, Options{URL: newNode(t, result(test.result)).URL}).SlotDuration(t.Context())
			if got.Round(time.Microsecond) != test.want.Round(time.Microsecond) || (test.want == 0) != (err != nil) {
				t.Errorf("a slot takes %s with error %v, want %s", got, err, test.want)
			}
			if err != nil && onchain.KindOf(err) != onchain.KindBadResponse {
				t.Errorf("the error is %v, want a bad response", err)
			}
		})
	}
}
