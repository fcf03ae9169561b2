package txmgr

import (
	"errors"
	"testing"
	"time"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/refusal"
)

func TestSendOutageNeedsRepeatedFailures(t *testing.T) {
	t.Parallel()
	timeout := &onchain.Unavailable{Method: "sendTransaction", Kind: onchain.KindTimeout}
	noBudget := &onchain.Unavailable{Method: "sendTransaction", Kind: onchain.KindBudget}
	const least = 5 * time.Second
	type send struct {
		at    time.Duration
		err   error
		lands bool
	}
	for name, test := range map[string]struct {
		sends []send
		at    time.Duration
		want  bool
	}{
		"nothing was sent":                              {at: time.Minute},
		"three fail over five seconds":                  {sends: []send{{err: timeout}, {at: 2 * time.Second, err: timeout}, {at: least, err: timeout}}, at: least, want: true},
		"two fail over five seconds":                    {sends: []send{{err: timeout}, {at: least, err: timeout}}, at: least},
		"many fail at one moment":                       {sends: []send{{err: timeout}, {err: timeout}, {err: timeout}, {err: timeout}}, at: least},
		"one of the sends is accepted":                  {sends: []send{{err: timeout}, {at: 2 * time.Second}, {at: 3 * time.Second, err: timeout}, {at: least, err: timeout}}, at: least},
		"the last send is refused by an endpoint":       {sends: []send{{err: timeout}, {err: timeout}, {at: least, err: timeout}, {at: least, err: &onchain.SendError{}}}, at: least},
		"a transaction lands after three timeouts":      {sends: []send{{err: timeout}, {err: timeout}, {at: least, err: timeout}, {at: least, lands: true}}, at: least},
		"the relay withheld all sends for its budget":   {sends: []send{{err: noBudget}, {at: 2 * time.Second, err: noBudget}, {at: least, err: noBudget}}, at: least},
		"one fails long after the others":               {sends: []send{{err: timeout}, {at: 2 * time.Second, err: timeout}, {at: least, err: timeout}, {at: time.Hour, err: timeout}}, at: time.Hour},
		"nothing is sent for long after three failures": {sends: []send{{err: timeout}, {at: 2 * time.Second, err: timeout}, {at: least, err: timeout}}, at: 3 * least},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := sendOutage{minDuration: least}
			start := time.Unix(1, 0)
			for _, s := range test.sends {
				if s.lands {
					d.reset()
				} else {
					d.observe(start.Add(s.at), s.err)
				}
			}
			if got := d.ongoing(start.Add(test.at)); got != test.want {
				t.Errorf("outage: %v, want %v", got, test.want)
			}
		})
	}
}

func TestPauseReasonComesFromTheError(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"a pool that is not initialised": {refusal.New(refusal.PoolNotInitialised, "no account"), string(refusal.PoolNotInitialised)},
		"a chain that does not answer":   {refusal.New(refusal.ChainUnavailable, "no answer"), HoldChain},
		"an error without a code":        {errors.New("eof"), HoldChain},
	} {
		if got := pauseReason(test.err); got != test.want {
			t.Errorf("%s: the pause reason is %s, want %s", name, got, test.want)
		}
	}
}
