package ledger

import (
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

var (
	payerKey = solana.PublicKey{1}
	otherKey = solana.PublicKey{2}
)

func TestNewEntryClassifiesPayments(t *testing.T) {
	t.Parallel()
	id := uuid.New()
	attempt := func(k shieldpool.Kind) *Attempt {
		return &Attempt{Submission: id, Kind: k, Purpose: txmgr.PurposeTransact}
	}
	secondLeg := func(p txmgr.Purpose) *Attempt {
		return &Attempt{Submission: id, Kind: shieldpool.KindSwap, Purpose: p}
	}
	tipped := func(a *Attempt, tip uint64) *Attempt {
		a.Tip = tip
		return a
	}
	sweepAttempt := &Attempt{Kind: shieldpool.Kind(KindSweep), Moved: 4_000_000}
	tests := map[string]struct {
		payer         solana.PublicKey
		failed        bool
		fee, sigs     uint64
		created       uint64
		sizes         []uint64
		rate          shieldpool.Rent
		before, after uint64
		attempt       *Attempt
		want          Kind // "" when there is no entry
		amounts       Amounts
	}{
		"a transfer of the relay pays fee, priority fee and rent": {
			payer: payerKey, fee: 5300, sigs: 5000, created: 1_781_760, before: 10_000_000, after: 10_000_000 - 5300 - 1_781_760, attempt: attempt(shieldpool.KindTransfer),
			want: KindTransfer, amounts: Amounts{Fee: 5000, PriorityFee: 300, Rent: 1_781_760},
		},
		"a withdrawal of the relay": {
			payer: payerKey, fee: 5000, sigs: 5000, created: 890_880, before: 10_000_000, after: 10_000_000 - 5000 - 890_880, attempt: attempt(shieldpool.KindWithdrawal),
			want: KindWithdrawal, amounts: Amounts{Fee: 5000, Rent: 890_880},
		},
		"a nullifier account that already has lamports costs less": {
			payer: payerKey, fee: 5000, sigs: 5000, created: 1_781_759, before: 10_000_000, after: 10_000_000 - 5000 - 1_781_759, attempt: attempt(shieldpool.KindTransfer),
			want: KindTransfer, amounts: Amounts{Fee: 5000, Rent: 1_781_759},
		},
		"a loss above the rent is unexplained": {
			payer: payerKey, fee: 5000, sigs: 5000, created: 1_781_760, before: 10_000_000, after: 10_000_000 - 5000 - 1_781_761, attempt: attempt(shieldpool.KindTransfer),
			want: KindTransfer, amounts: Amounts{Fee: 5000, Rent: 1_781_760, Other: 1},
		},
		"lamports above the highest rent of a new account are unexplained, not rent": {
			payer: payerKey, fee: 5000, sigs: 5000, created: 3_000_000, sizes: []uint64{0, 0}, before: 10_000_000, after: 10_000_000 - 5000 - 3_000_000, attempt: attempt(shieldpool.KindTransfer),
			want: KindTransfer, amounts: Amounts{Fee: 5000, Rent: 1_781_760, Other: 1_218_240},
		},
		"a chain with a higher rent": {
			payer: payerKey, fee: 5000, sigs: 5000, created: 256 * 8000, sizes: []uint64{0, 0}, rate: 8000, before: 10_000_000, after: 10_000_000 - 5000 - 256*8000, attempt: attempt(shieldpool.KindTransfer),
			want: KindTransfer, amounts: Amounts{Fee: 5000, Rent: 256 * 8000},
		},
		"a gain from a transfer is unexplained": {
			payer: payerKey, fee: 5000, sigs: 5000, before: 10_000_000, after: 10_000_001, attempt: attempt(shieldpool.KindTransfer),
			want: KindTransfer, amounts: Amounts{Fee: 5000, Other: -5001},
		},
		"a swap also pays for its state": {
			payer: payerKey, fee: 5000, sigs: 5000, created: 3_793_200, before: 10_000_000, after: 10_000_000 - 5000 - 1_781_760 - 2_011_440, attempt: attempt(shieldpool.KindSwap),
			want: KindSwap, amounts: Amounts{Fee: 5000, Rent: 3_793_200},
		},
		"a lamport above the cost of a swap's first leg is unexplained": {
			payer: payerKey, fee: 5000, sigs: 5000, created: 3_793_200, before: 10_000_000, after: 10_000_000 - 5000 - 3_793_201, attempt: attempt(shieldpool.KindSwap),
			want: KindSwap, amounts: Amounts{Fee: 5000, Rent: 3_793_200, Other: 1},
		},
		"a gain from a swap's first leg is unexplained": {
			payer: payerKey, fee: 5000, sigs: 5000, before: 10_000_000, created: 3_793_200, after: 10_000_000 - 5000 + 2_011_440, attempt: attempt(shieldpool.KindSwap),
			want: KindSwap, amounts: Amounts{Fee: 5000, Other: -2_011_440},
		},
		"an earlier release's token-account transaction": {
			payer: payerKey, fee: 5000, sigs: 5000, created: 3 * 2_039_280, before: 10_000_000, after: 10_000_000 - 5000 - 3*2_039_280, attempt: secondLeg("accounts"),
			want: KindSwap, amounts: Amounts{Fee: 5000, Rent: 3 * 2_039_280},
		},
		"an execution returns the rent of the state": {
			payer: payerKey, fee: 5300, sigs: 5000, before: 10_000_000, after: 10_000_000 - 5300 + 2_011_440, attempt: secondLeg(txmgr.PurposeExecute),
			want: KindSwap, amounts: Amounts{Fee: 5000, PriorityFee: 300, Rent: -2_011_440, Returned: 2_011_440},
		},
		"lamports that a stranger sent to the swap's accounts are received": {
			payer: payerKey, fee: 5000, sigs: 5000, before: 10_000_000, after: 10_000_000 - 5000 + 2_011_447, attempt: secondLeg(txmgr.PurposeExecute),
			want: KindSwap, amounts: Amounts{Fee: 5000, Rent: -2_011_440, Returned: 2_011_440, Received: 7},
		},
		"the rent of a stranger's token accounts is received": {
			payer: payerKey, fee: 5000, sigs: 5000, before: 10_000_000, after: 10_000_000 - 5000 + 6_090_000, attempt: secondLeg(txmgr.PurposeExecute),
			want: KindSwap, amounts: Amounts{Fee: 5000, Rent: -2_011_440, Returned: 2_011_440, Received: 4_078_560},
		},
		"an execution that creates the recipient's account pays its rent minus the state's rent": {
			payer: payerKey, fee: 5000, sigs: 5000, created: 3 * 2_039_280, before: 10_000_000, after: 10_000_000 - 5000 - 27_840, attempt: secondLeg(txmgr.PurposeExecute),
			want: KindSwap, amounts: Amounts{Fee: 5000, Rent: 27_840},
		},
		"the cost of an execution above an account's rent is unexplained": {
			payer: payerKey, fee: 5000, sigs: 5000, created: 2_039_280, before: 10_000_000, after: 10_000_000 - 5000 - 2_039_280 - 9, attempt: secondLeg(txmgr.PurposeExecute),
			want: KindSwap, amounts: Amounts{Fee: 5000, Rent: 2_039_280, Other: 9},
		},
		"an execution that failed cost its fee": {
			payer: payerKey, failed: true, fee: 5000, sigs: 5000, before: 10_000, after: 5000, attempt: secondLeg(txmgr.PurposeExecute),
			want: KindFailed, amounts: Amounts{Fee: 5000},
		},
		"a refund costs its fee": {
			payer: payerKey, fee: 5300, sigs: 5000, before: 10_000_000, after: 10_000_000 - 5300, attempt: secondLeg(txmgr.PurposeRefund),
			want: KindSwap, amounts: Amounts{Fee: 5000, PriorityFee: 300},
		},
		"rent refunded to the payer instead of the wallet is unexplained": {
			payer: payerKey, fee: 5000, sigs: 5000, before: 10_000_000, after: 10_000_000 - 5000 + 2_011_440, attempt: secondLeg(txmgr.PurposeRefund),
			want: KindSwap, amounts: Amounts{Fee: 5000, Other: -2_011_440},
		},
		"a failed transfer costs its fee": {
			payer: payerKey, failed: true, fee: 5300, sigs: 5000, before: 10_000, after: 4700, attempt: attempt(shieldpool.KindTransfer),
			want: KindFailed, amounts: Amounts{Fee: 5000, PriorityFee: 300},
		},
		"a landing with a lane's tip": {
			payer: payerKey, fee: 5300, sigs: 5000, created: 1_781_760, before: 10_000_000, after: 10_000_000 - 5300 - 7000 - 1_781_760, attempt: tipped(attempt(shieldpool.KindTransfer), 7000),
			want: KindTransfer, amounts: Amounts{Fee: 5000, PriorityFee: 300, Tip: 7000, Rent: 1_781_760},
		},
		"a loss above the tip is unexplained": {
			payer: payerKey, fee: 5000, sigs: 5000, created: 890_880, before: 10_000_000, after: 10_000_000 - 5000 - 7001 - 890_880, attempt: tipped(attempt(shieldpool.KindWithdrawal), 7000),
			want: KindWithdrawal, amounts: Amounts{Fee: 5000, Tip: 7000, Rent: 890_880, Other: 1},
		},
		"an execution's tip is not taken for less rent returned": {
			payer: payerKey, fee: 5000, sigs: 5000, before: 10_000_000, after: 10_000_000 - 5000 - 7000 + 2_011_440, attempt: tipped(secondLeg(txmgr.PurposeExecute), 7000),
			want: KindSwap, amounts: Amounts{Fee: 5000, Tip: 7000, Rent: -2_011_440, Returned: 2_011_440},
		},
		"a failed transfer pays no tip": {
			payer: payerKey, failed: true, fee: 5300, sigs: 5000, before: 20_000, after: 14_700, attempt: tipped(attempt(shieldpool.KindTransfer), 7000),
			want: KindFailed, amounts: Amounts{Fee: 5000, PriorityFee: 300},
		},
		"a sweep from the payer moves lamports and spends its fee": {
			payer: payerKey, fee: 5300, sigs: 5000, before: 10_000_000, after: 10_000_000 - 5300 - 4_000_000, attempt: sweepAttempt,
			want: KindSweep, amounts: Amounts{Fee: 5000, PriorityFee: 300, Moved: 4_000_000},
		},
		"lamports beyond a sweep's amount are unexplained": {
			payer: payerKey, fee: 5000, sigs: 5000, before: 10_000_000, after: 10_000_000 - 5000 - 4_000_001, attempt: sweepAttempt,
			want: KindSweep, amounts: Amounts{Fee: 5000, Moved: 4_000_000, Other: 1},
		},
		"a sweep from another key to the payer moves lamports": {
			payer: otherKey, fee: 5000, sigs: 5000, before: 10_000, after: 10_000 + 3_000_000, attempt: sweepAttempt,
			want: KindSweep, amounts: Amounts{Moved: -3_000_000},
		},
		"a sweep that failed cost its fee": {
			payer: payerKey, failed: true, fee: 5000, sigs: 5000, before: 10_000_000, after: 10_000_000 - 5000, attempt: sweepAttempt,
			want: KindFailed, amounts: Amounts{Fee: 5000},
		},
		"a failed sweep to the payer has no entry": {payer: otherKey, failed: true, fee: 5000, sigs: 5000, before: 10_000, after: 10_000, attempt: sweepAttempt},
		"a sweep from another key takes lamports from the payer: the payer's key signed": {
			payer: otherKey, fee: 5000, sigs: 5000, before: 10_000, after: 1000, attempt: sweepAttempt,
			want: KindUnknown, amounts: Amounts{Other: 9000},
		},
		"a transaction paid by the payer and unknown to the database": {
			payer: payerKey, fee: 5000, sigs: 5000, before: 10_000, after: 1000,
			want: KindUnknown, amounts: Amounts{Fee: 5000, Other: 4000},
		},
		"an unknown transaction that failed": {
			payer: payerKey, failed: true, fee: 5000, sigs: 5000, before: 10_000, after: 5000,
			want: KindUnknown, amounts: Amounts{Fee: 5000},
		},
		"a transaction of another fee payer takes lamports from the payer: the payer's key signed": {
			payer: otherKey, fee: 5000, sigs: 5000, before: 10_000, after: 1000,
			want: KindUnknown, amounts: Amounts{Other: 9000},
		},
		"funding":              {payer: otherKey, fee: 5000, sigs: 5000, before: 10_000, after: 30_000, want: KindReceived, amounts: Amounts{Received: 20_000}},
		"an unchanged balance": {payer: otherKey, fee: 5000, sigs: 5000, before: 10_000, after: 10_000},
		"a chain that charges less than usual": {
			payer: payerKey, fee: 3000, sigs: 5000, before: 10_000, after: 7000, attempt: attempt(shieldpool.KindWithdrawal),
			want: KindWithdrawal, amounts: Amounts{Fee: 3000},
		},
	}
	now := time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.sizes == nil && test.created > 0 {
				// One account, as large as its rent allows.
				test.sizes = []uint64{test.created/uint64(shieldpool.HighestRent) - 127}
			}
			got, ok := newEntry(&onchain.Payment{
				Signature: solana.Signature{7}, Slot: 9, FeePayer: test.payer, Failed: test.failed,
				Fee: test.fee, SignatureFees: test.sigs, Created: test.created, CreatedSizes: test.sizes, Before: test.before, After: test.after,
			}, payerKey, test.attempt, test.rate, now)
			if !ok {
				if test.want != "" {
					t.Fatalf("there is no entry, want kind %s", test.want)
				}
				return
			}
			want := Entry{Signature: solana.Signature{7}, Payer: payerKey, Slot: 9, At: now, Kind: test.want, Amounts: test.amounts, BalanceAfter: test.after}
			if test.attempt != nil && test.attempt != sweepAttempt {
				want.Submission = &id
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("entry differs (-want +got):\n%s", diff)
			}
			if lost := int64(test.before) - int64(test.after); got.Net() != lost {
				t.Errorf("the entry's net loss is %d, want %d", got.Net(), lost)
			}
		})
	}
}

func TestEntryHasBlockTime(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	if e, ok := newEntry(&onchain.Payment{FeePayer: otherKey, At: at, After: 1}, payerKey, nil, 0, at.Add(time.Hour)); !ok || !e.At.Equal(at) {
		t.Errorf("the entry's time is %s, want %s", e.At, at)
	}
}

func TestChainBalances(t *testing.T) {
	t.Parallel()
	pay := func(steps ...uint64) (out []*onchain.Payment) {
		for i := 0; i < len(steps); i += 2 {
			out = append(out, &onchain.Payment{Before: steps[i], After: steps[i+1]})
		}
		return out
	}
	from := func(after uint64) *Cursor { return &Cursor{BalanceAfter: after} }
	tests := map[string]struct {
		payments         []*onchain.Payment
		cursor           *Cursor
		opening, closing uint64
		consistent       bool
	}{
		"one payment from the cursor":                     {pay(9, 7), from(9), 9, 7, true},
		"one payment from another balance":                {pay(8, 7), from(9), 8, 7, false},
		"one payment without a cursor":                    {pay(9, 7), nil, 9, 7, true},
		"several payments in any order":                   {pay(5, 4, 9, 7, 7, 5), from(9), 9, 4, true},
		"several payments in any order, without a cursor": {pay(5, 4, 9, 7, 7, 5), nil, 9, 4, true},
		"a payment in the middle is missing":              {pay(5, 4, 9, 7), from(9), 9, 4, false},
		"spent and received back":                         {pay(7, 9, 9, 7), from(9), 9, 9, true},
		"spent and received back, from another balance":   {pay(6, 8, 8, 6), from(9), 6, 6, false},
		"one payment without a change":                    {pay(9, 9), from(9), 9, 9, true},
		"a payment without a change between two others":   {pay(9, 7, 7, 7, 7, 5), from(9), 9, 5, true},
		"the same step twice with income":                 {pay(9, 7, 7, 9, 9, 7), from(9), 9, 7, true},
		"two payments from the same balance":              {pay(9, 7, 9, 7), from(9), 9, 7, false},
		"no payments":                                     {nil, from(9), 0, 0, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opening, closing, consistent := slotBalances(test.payments, test.cursor)
			if consistent != test.consistent || consistent && (opening != test.opening || closing != test.closing) {
				t.Errorf("from %d to %d (%v), want from %d to %d (%v)", opening, closing, consistent, test.opening, test.closing, test.consistent)
			}
		})
	}
}
