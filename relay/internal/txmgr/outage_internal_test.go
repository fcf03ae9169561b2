package txmgr

import (
	"errors"
	"testing"
	"time"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/refusal"
)

func TestDeafnessTakesSeveralSendsThatFailForLong(t *testing.T) {
	t.Parallel()
	away := &onchain.Unavailable{Method: "sendTransaction", Kind: onchain.KindTimeout}
	leftOut := &onchain.Unavailable{Method: "sendTransaction", Kind: onchain.KindBudget}
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
		"nothing was sent":                            {at: time.Minute},
		"three fail over five seconds":                {sends: []send{{err: away}, {at: 2 * time.Second, err: away}, {at: least, err: away}}, at: least, want: true},
		"two fail over five seconds":                  {sends: []send{{err: away}, {at: least, err: away}}, at: least},
		"many fail at one moment":                     {sends: []send{{err: away}, {err: away}, {err: away}, {err: away}}, at: least},
		"one is taken among them":                     {sends: []send{{err: away}, {at: 2 * time.Second}, {at: 3 * time.Second, err: away}, {at: least, err: away}}, at: least},
		"one is refused by who heard it":              {sends: []send{{err: away}, {err: away}, {at: least, err: away}, {at: least, err: &onchain.SendError{}}}, at: least},
		"one lands of which nobody heard":             {sends: []send{{err: away}, {err: away}, {at: least, err: away}, {at: least, lands: true}}, at: least},
		"the relay left all out for want of a budget": {sends: []send{{err: leftOut}, {at: 2 * time.Second, err: leftOut}, {at: least, err: leftOut}}, at: least},
		"one fails long after several did":            {sends: []send{{err: away}, {at: 2 * time.Second, err: away}, {at: least, err: away}, {at: time.Hour, err: away}}, at: time.Hour},
		"nothing has been tried since for long":       {sends: []send{{err: away}, {at: 2 * time.Second, err: away}, {at: least, err: away}}, at: 3 * least},
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
				t.Errorf("deaf: %v, want %v", got, test.want)
			}
		})
	}
}

func TestTheReasonOfAHoldIsTheErrorsOwn(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"a pool that is not initialised": {refusal.New(refusal.PoolNotInitialised, "no account"), string(refusal.PoolNotInitialised)},
		"a chain that is away":           {refusal.New(refusal.ChainUnavailable, "no answer"), HoldChain},
		"an error without a code":        {errors.New("eof"), HoldChain},
	} {
		if got := pauseReason(test.err); got != test.want {
			t.Errorf("%s: the queue waits for %s, want %s", name, got, test.want)
		}
	}
}
