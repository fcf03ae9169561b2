package ledger

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"
)

func date(d int) time.Time { return time.Date(2026, 11, d, 0, 0, 0, 0, time.UTC) }

// exampleLedger is a ledger of two payers over two days that adds up.
func exampleLedger() *Snapshot {
	days := []Sum{
		{date(21), payerKey, KindTransfer, 2, Amounts{Fee: 10_000, PriorityFee: 600, Rent: 2 * 1_781_760}},
		{date(20), payerKey, KindReceived, 1, Amounts{Received: 2_000_000_000}},
		{date(20), payerKey, KindTransfer, 1, Amounts{Fee: 5000, Tip: 300, Rent: 1_781_760}},
		{date(20), otherKey, KindFailed, 1, Amounts{Fee: 5000, PriorityFee: 300}},
		{date(21), otherKey, KindSwap, 3, Amounts{Fee: 15_000, Rent: 1_781_760 + 2_039_280, Returned: 6_090_000, Received: 7}},
		{date(21), payerKey, KindSweep, 1, Amounts{Fee: 5000, Moved: 900_000_000}},
		{date(21), otherKey, KindSweep, 1, Amounts{Moved: -900_000_000}},
	}
	return &Snapshot{
		Days: days, Totals: []Sum{
			{time.Time{}, payerKey, KindTransfer, 3, Amounts{Fee: 15_000, PriorityFee: 600, Tip: 300, Rent: 3 * 1_781_760}},
			{time.Time{}, payerKey, KindReceived, 1, Amounts{Received: 2_000_000_000}},
			{time.Time{}, otherKey, KindFailed, 1, Amounts{Fee: 5000, PriorityFee: 300}},
			{time.Time{}, otherKey, KindSwap, 3, Amounts{Fee: 15_000, Rent: 1_781_760 + 2_039_280, Returned: 6_090_000, Received: 7}},
			{time.Time{}, payerKey, KindSweep, 1, Amounts{Fee: 5000, Moved: 900_000_000}},
			{time.Time{}, otherKey, KindSweep, 1, Amounts{Moved: -900_000_000}},
		},
		Cursors: []Cursor{
			{Payer: payerKey, Slot: 900, BalanceAfter: 2_000_000_000 - 15_900 - 3*1_781_760 - 5000 - 900_000_000, CheckedAt: date(21).Add(time.Hour)},
			{Payer: otherKey, Opening: 5_000_000, Slot: 800, BalanceAfter: 5_000_000 - 5300 - 15_000 - 3_821_040 + 7 + 900_000_000, CheckedAt: date(21)},
		},
	}
}

func TestStatementAsTable(t *testing.T) {
	t.Parallel()
	s := exampleLedger().Statement(map[solana.PublicKey]uint64{payerKey: 1_094_633_820, otherKey: 901_158_667})
	var out strings.Builder
	if err := s.WriteTable(&out); err != nil {
		t.Fatal(err)
	}
	const want = `   day (UTC)  transactions    fee  priority fee  tip     rent  other    received    spent   spent, SOL
  2026-11-20             3  10000           300  300  1781760      0  2000000000  1792360  0.001792360
  2026-11-21             7  30000           600    0  7384560      0           7  7415160  0.007415160
         all            10  40000           900  300  9166320      0  2000000007  9207520  0.009207520

Amounts are lamports, except the last column. The same days by kind of transaction; rent is net of the rent that was returned:

      kind  transactions    fee  priority fee  tip     rent  returned  other  moved    received    spent
  transfer             3  15000           600  300  5345280         0      0      0           0  5361180
      swap             3  15000             0    0  3821040   6090000      0      0           7  3836040
     sweep             2   5000             0    0        0         0      0      0           0     5000
    failed             1   5000           300    0        0         0      0      0           0     5300
  received             1      0             0    0        0         0      0      0  2000000000        0

Since the start of the ledger:

                                    fee payer  opening    spent       moved    received  gaps     closing   chain now  difference  unknown  unexplained
  4uQeVj5tqViQh7yWWGStvkEG1Zmhx6uasJtWCJziofM        0  5366180   900000000  2000000000     0  1094633820  1094633820           0        0            0
  8opHzTAnfzRpPEx21XtnrVTX28YQuCpAjcn1PczScKh  5000000  3841340  -900000000           7     0   901158667   901158667           0        0            0

Agrees: every lamport is accounted for.
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("table differs (-want +got):\n%s", diff)
	}
	if !s.Agrees() {
		t.Error("Agrees is false, want true")
	}
}

func TestStatementAsJSON(t *testing.T) {
	t.Parallel()
	s := exampleLedger().Statement(nil)
	var out strings.Builder
	if err := s.WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Days   []map[string]any `json:"days"`
		Kinds  []map[string]any `json:"kinds"`
		Payers []map[string]any `json:"payers"`
	}
	if err := json.Unmarshal([]byte(out.String()), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"day": "2026-11-21", "transactions": 7.0, "fee": 30_000.0, "priority_fee": 600.0, "tip": 0.0, "rent": 7_384_560.0, "returned": 6_090_000.0, "other": 0.0,
		"moved": 0.0, "received": 7.0, "spent": 7_415_160.0, "spent_sol": "0.007415160",
	}
	if diff := cmp.Diff(want, got.Days[1]); diff != "" {
		t.Errorf("day differs (-want +got):\n%s", diff)
	}
	want = map[string]any{
		"day": "2026-11-20", "payer": payerKey.String(), "kind": "received", "transactions": 1.0,
		"fee": 0.0, "priority_fee": 0.0, "tip": 0.0, "rent": 0.0, "returned": 0.0, "other": 0.0, "moved": 0.0, "received": 2e9,
	}
	if diff := cmp.Diff(want, got.Kinds[1]); diff != "" {
		t.Errorf("kind differs (-want +got):\n%s", diff)
	}
	want = map[string]any{
		"payer": otherKey.String(), "opening": 5_000_000.0, "spent": 3_841_340.0, "moved": -900_000_000.0, "received": 7.0, "gaps": 0.0, "missing": 0.0, "closing": 901_158_667.0,
		"unexplained": 0.0, "unknown": 0.0, "other": 0.0, "slot": 800.0, "checked_at": "2026-11-21T00:00:00Z",
	}
	if diff := cmp.Diff(want, got.Payers[1]); diff != "" {
		t.Errorf("payer without a balance from the chain differs (-want +got):\n%s", diff)
	}
}

func TestStatementReportsDisagreements(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change  func(*Snapshot)
		chain   uint64 // payerKey's balance; 0 when it was not read
		agrees  bool
		verdict string
	}{
		"no disagreement":            {agrees: true, verdict: "Agrees: every"},
		"no payer yet":               {change: func(l *Snapshot) { *l = Snapshot{} }, agrees: true, verdict: "is empty"},
		"less on the chain":          {chain: 1_094_633_819, verdict: "not final or not read yet"},
		"an unknown signature":       {change: func(l *Snapshot) { l.Totals[0].Kind = KindUnknown }, verdict: "somebody else has the key"},
		"a cost beyond fee and rent": {change: func(l *Snapshot) { l.Totals[0].Rent--; l.Totals[0].Other++ }, verdict: "the relay did not make"},
		"a gap":                      {change: func(l *Snapshot) { l.Cursors[0].Gaps = 1 }, verdict: "history is missing"},
		"rows changed by hand":       {change: func(l *Snapshot) { l.Totals[0].Fee++ }, verdict: "history is missing"},
		"a gap that explains the balance": {change: func(l *Snapshot) {
			l.Cursors[0].Gaps, l.Cursors[0].Missing, l.Cursors[0].BalanceAfter = 1, 5, l.Cursors[0].BalanceAfter+5
		}, verdict: "history is missing"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := exampleLedger()
			if test.change != nil {
				test.change(l)
			}
			var chain map[solana.PublicKey]uint64
			if test.chain > 0 {
				chain = map[solana.PublicKey]uint64{payerKey: test.chain}
			}
			s := l.Statement(chain)
			var out strings.Builder
			if err := s.WriteTable(&out); err != nil {
				t.Fatal(err)
			}
			if s.Agrees() != test.agrees || !strings.Contains(out.String(), test.verdict) {
				t.Errorf("agrees: %v, want %v with %q:\n%s", s.Agrees(), test.agrees, test.verdict, out.String())
			}
		})
	}
}
