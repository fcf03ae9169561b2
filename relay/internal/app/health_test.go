package app

import (
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/internal/chain"
	"github.com/relaypool/relaypool/relay/internal/chain/judge"
	"github.com/relaypool/relaypool/relay/internal/feepayer"
	"github.com/relaypool/relaypool/relay/internal/spending"
	"github.com/relaypool/relaypool/relay/internal/submission"
)

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestHealthNamesEverySickEndpoint(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		all  []chain.EndpointStatus
		want string
	}{
		"all are well":                {[]chain.EndpointStatus{{Name: "a", Breaker: judge.Closed, Lag: 40}, {Name: "b", Breaker: judge.Closed, LastError: "timeout"}}, ""},
		"one that fails":              {[]chain.EndpointStatus{{Name: "a", Breaker: judge.Closed}, {Name: "b", Breaker: judge.Open, LastError: "rate_limited", LastErrorAt: now.Add(-90 * time.Second)}}, "b fails and is only probed: its last error, 1m30s ago, was rate_limited"},
		"one that is probed":          {[]chain.EndpointStatus{{Name: "b", Breaker: judge.HalfOpen, LastError: "timeout", LastErrorAt: now}}, "b fails and is only probed: its last error, 0s ago, was timeout"},
		"one that is behind":          {[]chain.EndpointStatus{{Name: "a", Breaker: judge.Closed, Lag: 301}}, "a is 301 slots behind the others"},
		"one of another chain":        {[]chain.EndpointStatus{{Name: "a", Breaker: judge.Closed, Foreign: true}}, "a serves another chain and is not used: correct its URL"},
		"two that are sick otherwise": {[]chain.EndpointStatus{{Name: "a", Foreign: true}, {Name: "b", Breaker: judge.Closed, Lag: 999}}, "a serves another chain and is not used: correct its URL; b is 999 slots behind the others"},
	} {
		if diff := cmp.Diff(tc.want, text(endpointsProblem(tc.all, now))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestHealthNamesEveryPayerThatIsNotUsed(t *testing.T) {
	t.Parallel()
	one, two := solana.PublicKey{1}, solana.PublicKey{2}
	for name, tc := range map[string]struct {
		all  []feepayer.Balance
		want string
	}{
		"all are funded":            {[]feepayer.Balance{{Payer: one, State: feepayer.StateReady, Lamports: 100}}, ""},
		"one is dry":                {[]feepayer.Balance{{Payer: one, State: feepayer.StateReady, Lamports: 100}, {Payer: two, State: feepayer.StateDry, Lamports: 7}}, "fee payer " + two.String() + " holds 7 lamports, expected at least 50: send it funds"},
		"one is refused":            {[]feepayer.Balance{{Payer: one, State: feepayer.StateRefused, Lamports: 70}}, "the chain refuses fee payer " + one.String() + ", which held 70 lamports when it was last read: look at the account"},
		"one has never been read":   {[]feepayer.Balance{{Payer: one, State: feepayer.StateUnknown}}, "the balance of fee payer " + one.String() + " has not been read since the relay started"},
		"one was read long ago":     {[]feepayer.Balance{{Payer: one, State: feepayer.StateReady, Lamports: 100, Age: 3 * time.Minute}}, "the balance of fee payer " + one.String() + " was last read 3m0s ago"},
		"two are bad in their ways": {[]feepayer.Balance{{Payer: one, State: feepayer.StateDry}, {Payer: two, State: feepayer.StateUnknown}}, "fee payer " + one.String() + " holds 0 lamports, expected at least 50: send it funds; the balance of fee payer " + two.String() + " has not been read since the relay started"},
	} {
		if diff := cmp.Diff(tc.want, text(payersProblem(tc.all, 50))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestHealthNamesEveryCapThatIsReached(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		usage []spending.Usage
		want  string
	}{
		"no cap":              {[]spending.Usage{{Cap: "hour", Spent: 1000}}, ""},
		"room under the cap":  {[]spending.Usage{{Cap: "hour", Spent: 9, Limit: 10}}, ""},
		"the cap is used up":  {[]spending.Usage{{Cap: "hour", Spent: 10, Limit: 10}}, "the spend cap hour is reached: 10 of 10 lamports; work waits until enough of it leaves the window, or until --spend-cap-hour is raised"},
		"the next is refused": {[]spending.Usage{{Cap: "transfers_day", Spent: 9, Limit: 10, Reached: true}}, "the spend cap transfers_day is reached: 9 of 10 lamports; work waits until enough of it leaves the window, or until --spend-cap-transfers-day is raised"},
	} {
		if diff := cmp.Diff(tc.want, text(spendingProblem(tc.usage))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestHealthSaysWhatTheQueueWaitsFor(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		backlog submission.Backlog
		holding string
		want    string
	}{
		"work that flows":          {submission.Backlog{Pending: 9, Processing: 3, Due: 9, OldestDue: time.Second}, "", ""},
		"nobody takes it up":       {submission.Backlog{Due: 9, OldestDue: 61 * time.Second}, "", "9 submissions are due and nobody takes them up, the oldest for 1m1s: run more relays"},
		"held for two reasons":     {submission.Backlog{Held: map[string]int64{"spend_cap_reached": 2, "fee_payer_empty": 4, "chain_unavailable": 0}}, "", "submissions are held: 4 for fee_payer_empty, 2 for spend_cap_reached"},
		"this process takes none":  {submission.Backlog{}, "fee_payer_empty", "this relay takes nothing up: fee_payer_empty"},
		"both, and something due ": {submission.Backlog{Held: map[string]int64{"a": 1}, Due: 2, OldestDue: time.Hour}, "a", "this relay takes nothing up: a; submissions are held: 1 for a; 2 submissions are due and nobody takes them up, the oldest for 1h0m0s: run more relays"},
	} {
		if diff := cmp.Diff(tc.want, text(queueProblem(tc.backlog, tc.holding))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
