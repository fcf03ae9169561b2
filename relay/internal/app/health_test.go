package app

import (
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/internal/chain"
	"github.com/relaypool/relaypool/relay/internal/feepayer"
	"github.com/relaypool/relaypool/relay/internal/ledger"
	"github.com/relaypool/relaypool/relay/internal/outbound"
	"github.com/relaypool/relaypool/relay/internal/spendcap"
	"github.com/relaypool/relaypool/relay/internal/submission"
)

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestHealthNamesEveryUnhealthyEndpoint(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		all  []chain.EndpointStatus
		want string
	}{
		"all are healthy":                    {[]chain.EndpointStatus{{Name: "a", Breaker: outbound.Closed, Lag: 40}, {Name: "b", Breaker: outbound.Closed, LastError: "timeout"}}, ""},
		"one that fails":                     {[]chain.EndpointStatus{{Name: "a", Breaker: outbound.Closed}, {Name: "b", Breaker: outbound.Open, LastError: "rate_limited", LastErrorAt: now.Add(-90 * time.Second)}}, "b keeps failing, so the relay sends it nothing but probes: its last error, 1m30s ago, was rate_limited"},
		"one that is probed":                 {[]chain.EndpointStatus{{Name: "b", Breaker: outbound.HalfOpen, LastError: "timeout", LastErrorAt: now}}, "b keeps failing, so the relay sends it nothing but probes: its last error, 0s ago, was timeout"},
		"one that is behind":                 {[]chain.EndpointStatus{{Name: "a", Breaker: outbound.Closed, Lag: 301}}, "a is 301 slots behind the others"},
		"one of another chain":               {[]chain.EndpointStatus{{Name: "a", Breaker: outbound.Closed, Foreign: true}}, "a serves another chain and is not used: correct its URL"},
		"one that contradicts others":        {[]chain.EndpointStatus{{Name: "a", Breaker: outbound.Closed, LastError: "contradiction", LastErrorAt: now.Add(-59 * time.Second)}}, "a contradicts other endpoints, or itself, on the chain's block height: compare its getEpochInfo with an explorer's, and remove the endpoint that is wrong"},
		"one that contradicted a minute ago": {[]chain.EndpointStatus{{Name: "a", Breaker: outbound.Closed, LastError: "contradiction", LastErrorAt: now.Add(-time.Minute)}}, ""},
		"one far ahead of the others":        {[]chain.EndpointStatus{{Name: "a", Breaker: outbound.Closed}, {Name: "b", Breaker: outbound.Closed, Contradictions: 3, ContradictedAt: now.Add(-4 * time.Second)}}, "b reported a slot or a height that no other endpoint confirms, 4s ago; such answers are not used: report it to its provider, or remove it"},
		"two that contradict": {[]chain.EndpointStatus{
			{Name: "a", Breaker: outbound.Closed, ContradictedAt: now.Add(-4 * time.Second), ContradictedBy: "b"}, {Name: "b", Breaker: outbound.Closed, ContradictedAt: now.Add(-4 * time.Second), ContradictedBy: "a"},
		}, "a and b contradict each other, the last time 4s ago: one of them is wrong, and work that depends on their answers waits: compare with a third endpoint, and remove the one that is wrong"},
		"a contradiction long ago": {[]chain.EndpointStatus{{Name: "b", Breaker: outbound.Closed, Contradictions: 3, ContradictedAt: now.Add(-6 * time.Minute)}}, ""},
		"two with other problems":  {[]chain.EndpointStatus{{Name: "a", Foreign: true}, {Name: "b", Breaker: outbound.Closed, Lag: 999}}, "a serves another chain and is not used: correct its URL; b is 999 slots behind the others"},
	} {
		if diff := cmp.Diff(tc.want, errorText(endpointsProblem(tc.all, now))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestHealthNamesUnconfirmedEndpoints(t *testing.T) {
	t.Parallel()
	read, submit := []chain.Role{chain.RoleRead, chain.RoleSubmit}, []chain.Role{chain.RoleSubmit}
	for name, tc := range map[string]struct {
		all  []chain.EndpointStatus
		want string
	}{
		"one endpoint":                       {[]chain.EndpointStatus{{Name: "a", Roles: read}}, "ok; landings, failures and finality rest on a alone: add a second endpoint, of another provider, to confirm them"},
		"one, with another only for sending": {[]chain.EndpointStatus{{Name: "s", Roles: submit}, {Name: "a", Roles: read}}, "ok; landings, failures and finality rest on a alone: add a second endpoint, of another provider, to confirm them"},
		"two endpoints":                      {[]chain.EndpointStatus{{Name: "a", Roles: read}, {Name: "b", Roles: read}}, "ok"},
	} {
		if got := endpointsMessage(tc.all); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
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
		"one is refused":            {[]feepayer.Balance{{Payer: one, State: feepayer.StateRefused, Lamports: 70}}, "the chain refuses fee payer " + one.String() + ", which held 70 lamports when it was last read: check the account"},
		"one has never been read":   {[]feepayer.Balance{{Payer: one, State: feepayer.StateUnknown}}, "the balance of fee payer " + one.String() + " has not been read since the relay started"},
		"one was read long ago":     {[]feepayer.Balance{{Payer: one, State: feepayer.StateReady, Lamports: 100, Age: 3 * time.Minute}}, "the balance of fee payer " + one.String() + " was last read 3m0s ago"},
		"two have different faults": {[]feepayer.Balance{{Payer: one, State: feepayer.StateDry}, {Payer: two, State: feepayer.StateUnknown}}, "fee payer " + one.String() + " holds 0 lamports, expected at least 50: send it funds; the balance of fee payer " + two.String() + " has not been read since the relay started"},
	} {
		if diff := cmp.Diff(tc.want, errorText(payersProblem(tc.all, 50))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestHealthNamesEveryCapThatIsReached(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		usage []spendcap.Usage
		want  string
	}{
		"no cap":                            {[]spendcap.Usage{{Cap: "hour", Spent: 1000}}, ""},
		"room under the cap":                {[]spendcap.Usage{{Cap: "hour", Spent: 9, Limit: 10}}, ""},
		"the cap is used up":                {[]spendcap.Usage{{Cap: "hour", Spent: 10, Limit: 10}}, "the spend cap hour is reached: 10 of 10 lamports; work waits until enough of that spending leaves the window, or until --spend-cap-hour is raised"},
		"the next transaction does not fit": {[]spendcap.Usage{{Cap: "transfers_day", Spent: 9, Limit: 10, Reached: true}}, "the spend cap transfers_day is reached: 9 of 10 lamports; work waits until enough of that spending leaves the window, or until --spend-cap-transfers-day is raised"},
	} {
		if diff := cmp.Diff(tc.want, errorText(spendingProblem(tc.usage))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestHealthReportsTheQueue(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		backlog  submission.Backlog
		pausedBy string
		want     string
	}{
		"due for a short time":          {submission.Backlog{Pending: 9, Processing: 3, Due: 9, OldestDue: time.Second}, "", ""},
		"due but not claimed":           {submission.Backlog{Due: 9, OldestDue: 61 * time.Second}, "", "9 submissions are due and no relay claims them, the oldest for 1m1s: run more relays"},
		"held for two reasons":          {submission.Backlog{Held: map[string]int64{"spend_cap_reached": 2, "fee_payer_empty": 4, "chain_unavailable": 0}}, "", "submissions are held: 4 for fee_payer_empty, 2 for spend_cap_reached"},
		"waiting for a second endpoint": {submission.Backlog{Held: map[string]int64{"second_endpoint": 3}}, "", "submissions are held: 3 for second_endpoint; submissions held for second_endpoint wait until a second RPC endpoint confirms the first, and new work continues: the check rpc names the endpoints that do not answer or that contradict others; add an endpoint, or remove the one that is dead or wrong from the configuration"},
		"this process is paused":        {submission.Backlog{}, "fee_payer_empty", "this relay claims no work: fee_payer_empty"},
		"paused, held and due":          {submission.Backlog{Held: map[string]int64{"a": 1}, Due: 2, OldestDue: time.Hour}, "a", "this relay claims no work: a; submissions are held: 1 for a; 2 submissions are due and no relay claims them, the oldest for 1h0m0s: run more relays"},
	} {
		if diff := cmp.Diff(tc.want, errorText(queueProblem(tc.backlog, tc.pausedBy))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestHealthReportsUnaccountedLamports(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	current, former := solana.PublicKey{1}, solana.PublicKey{2}
	sum := func(kind ledger.Kind, a ledger.Amounts) ledger.Sum {
		return ledger.Sum{Payer: current, Kind: kind, Transactions: 3, Amounts: a}
	}
	complete := ledger.Cursor{Payer: current, Opening: 100, BalanceAfter: 90, CheckedAt: now.Add(-time.Minute)}
	spent := sum(ledger.KindTransfer, ledger.Amounts{Fee: 4, Rent: 6})
	behind := complete
	behind.CheckedAt = now.Add(-time.Hour)
	incomplete := complete
	incomplete.CheckedAt = time.Time{}
	wrong := complete
	wrong.BalanceAfter = 85
	balances := []feepayer.Balance{{Payer: current, State: feepayer.StateReady, Lamports: 90}}
	for name, tc := range map[string]struct {
		ledger ledger.Snapshot
		uptime time.Duration // of the relay
		want   string
	}{
		"no ledger after a minute":       {ledger.Snapshot{}, time.Minute, ""},
		"no ledger after an hour":        {ledger.Snapshot{}, time.Hour, "the ledger of fee payer " + current.String() + " is behind the chain: it was never complete"},
		"every lamport accounted for":    {ledger.Snapshot{Totals: []ledger.Sum{spent}, Cursors: []ledger.Cursor{complete}}, time.Hour, ""},
		"an unknown signature this week": {ledger.Snapshot{Days: []ledger.Sum{sum(ledger.KindUnknown, ledger.Amounts{})}, Totals: []ledger.Sum{spent}, Cursors: []ledger.Cursor{complete}}, time.Hour, "3 transactions of the last 7 days were signed by a fee payer and are not in the database: somebody else may have the key; run relay ledger"},
		"a balance that does not add up": {ledger.Snapshot{Totals: []ledger.Sum{spent}, Cursors: []ledger.Cursor{wrong}}, time.Hour, "-5 lamports of fee payer " + current.String() + " are not accounted for: run relay ledger"},
		"a cost that is not understood":  {ledger.Snapshot{Totals: []ledger.Sum{sum(ledger.KindTransfer, ledger.Amounts{Fee: 4, Other: 6})}, Cursors: []ledger.Cursor{complete}}, time.Hour, "6 lamports of fee payer " + current.String() + " are not accounted for: run relay ledger"},
		"behind the chain for long":      {ledger.Snapshot{Totals: []ledger.Sum{spent}, Cursors: []ledger.Cursor{behind}}, time.Hour, "the ledger of fee payer " + current.String() + " is behind the chain: it was complete 1h0m0s ago"},
		"never complete":                 {ledger.Snapshot{Totals: []ledger.Sum{spent}, Cursors: []ledger.Cursor{incomplete}}, time.Hour, "the ledger of fee payer " + current.String() + " is behind the chain: it was never complete"},
		"a relay that has just started":  {ledger.Snapshot{Totals: []ledger.Sum{spent}, Cursors: []ledger.Cursor{behind}}, time.Minute, ""},
		"a former payer is behind":       {ledger.Snapshot{Totals: []ledger.Sum{spent}, Cursors: []ledger.Cursor{{Payer: former, CheckedAt: now.Add(-time.Hour)}, complete}}, time.Hour, ""},
	} {
		b, started := &accountingCache{}, now.Add(-tc.uptime)
		b.lags(&tc.ledger, balances, started)
		if diff := cmp.Diff(tc.want, errorText(ledgerProblem(&tc.ledger, b.lags(&tc.ledger, balances, now), now, started))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestCostsAreSummedByKindAndDay(t *testing.T) {
	t.Parallel()
	day := func(d int) time.Time { return time.Date(2026, 11, d, 0, 0, 0, 0, time.UTC) }
	sums := []ledger.Sum{
		{Day: day(20), Kind: ledger.KindTransfer, Amounts: ledger.Amounts{Fee: 1}},
		{Day: day(21), Kind: ledger.KindTransfer, Payer: solana.PublicKey{1}, Amounts: ledger.Amounts{Fee: 2, Rent: 3}},
		{Day: day(21), Kind: ledger.KindTransfer, Payer: solana.PublicKey{2}, Amounts: ledger.Amounts{Fee: 4, PriorityFee: 5, Tip: 9, Other: 6}},
		{Day: day(21), Kind: ledger.KindReceived, Amounts: ledger.Amounts{Received: 7}},
		{Day: day(21), Kind: ledger.KindSwap, Amounts: ledger.Amounts{Fee: 1, Rent: -30, Returned: 50}},
	}
	got := map[string]float64{}
	sampleCosts(sumByKind(sums, startOfDay(time.Date(2026, 11, 21, 23, 59, 0, 0, time.UTC))), func(v float64, labels ...string) { got[labels[0]+" "+labels[1]] = v })
	want := map[string]float64{"transfer fee": 6, "transfer priority_fee": 5, "transfer tip": 9, "transfer rent": 3, "transfer other": 6,
		"swap fee": 1, "swap priority_fee": 0, "swap tip": 0, "swap rent": 20, "swap other": 0}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("costs of the day (-want +got):\n%s", diff)
	}
}
