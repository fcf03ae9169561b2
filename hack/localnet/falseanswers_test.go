package localnet_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/fault"
)

const falseErr = `{"InstructionError":[2,{"Custom":4112}]}`

// positions are the slots and heights that an endpoint reports at confirmed.
type positions struct{ slot, context, height, lastValid, epochSlot, epochHeight uint64 }

func (f *fixture) positions() (at positions) {
	f.t.Helper()
	ctx := context.Background()
	var err error
	if at.slot, err = f.GetSlot(ctx, rpc.CommitmentConfirmed); err != nil {
		f.t.Fatal(err)
	}
	if at.height, err = f.GetBlockHeight(ctx, rpc.CommitmentConfirmed); err != nil {
		f.t.Fatal(err)
	}
	latest, err := f.GetLatestBlockhash(ctx, rpc.CommitmentConfirmed)
	if err != nil {
		f.t.Fatal(err)
	}
	at.context, at.lastValid = latest.Context.Slot, latest.Value.LastValidBlockHeight
	epoch, err := f.GetEpochInfo(ctx, rpc.CommitmentConfirmed)
	if err != nil {
		f.t.Fatal(err)
	}
	at.epochSlot, at.epochHeight = epoch.AbsoluteSlot, epoch.BlockHeight
	return at
}

func TestFaultsChangeReportedSlotsAndHeights(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{})
	f.Skip(7) // so that slots and heights differ
	f.Advance(40)
	truth := f.positions()
	gap := truth.slot - truth.height
	if gap < 7 {
		t.Fatalf("slot %d and height %d: want 7 or more between them", truth.slot, truth.height)
	}
	tests := map[string]struct {
		rules []fault.Rule
		want  func(positions) positions
	}{
		"slots ahead": {[]fault.Rule{{Ahead: 100}}, func(w positions) positions {
			w.slot, w.context, w.epochSlot = w.slot+100, w.context+100, w.epochSlot+100
			return w
		}},
		"slots ahead in one method": {[]fault.Rule{{Method: "getLatestBlockhash", Ahead: 100}}, func(w positions) positions {
			w.context += 100
			return w
		}},
		"heights ahead": {[]fault.Rule{{HeightAhead: 22_000_000}}, func(w positions) positions {
			w.height, w.lastValid, w.epochHeight = w.height+22_000_000, w.lastValid+22_000_000, w.epochHeight+22_000_000
			return w
		}},
		"slots instead of heights": {[]fault.Rule{{SlotAsHeight: true}}, func(w positions) positions {
			w.height, w.lastValid, w.epochHeight = w.slot, w.lastValid+gap, w.epochSlot
			return w
		}},
		"an old state presented as the newest": {[]fault.Rule{{Lag: 10, Ahead: 10}}, func(w positions) positions {
			w.height, w.lastValid, w.epochHeight = w.height-10, w.lastValid-10, w.epochHeight-10
			return w
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got, want := f.withFaults(test.rules...).positions(), test.want(truth); got != want {
				t.Errorf("the answer is %+v, want %+v", got, want)
			}
		})
	}
}

func TestClaimedSlotDecidesMinContextSlot(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{})
	faulty := f.withFaults(fault.Rule{Ahead: 100})
	payer := f.payer.PublicKey().String()
	now := f.positions().slot
	for more, wantAnswer := range map[uint64]bool{100: true, 101: false} {
		out := faulty.call("getBalance", `["`+payer+`",{"commitment":"confirmed","minContextSlot":`+jsonOf(t, now+more)+`}]`)
		if got := out.Error == nil; got != wantAnswer {
			t.Errorf("minContextSlot %d slots after the true slot: answered %t, want %t", more, got, wantAnswer)
		}
	}
}

func TestFalseTransactionOutcomes(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{})
	landed := f.send(f.sign(f.blockhash(rpc.CommitmentProcessed), f.transfer(1_000_000)))
	f.Finalize()
	unsent := f.sign(f.blockhash(rpc.CommitmentProcessed), f.transfer(2_000_000)).Signatures[0]
	tests := map[string]struct {
		rules     []fault.Rule
		signature solana.Signature
		want      string
	}{
		"landed, reported as landed":  {[]fault.Rule{{Outcome: fault.OutcomeSucceeds}}, landed, "finalized null"},
		"landed, reported as failed":  {[]fault.Rule{{Outcome: fault.OutcomeFails, Err: falseErr}}, landed, "finalized " + falseErr},
		"unsent, reported as landed":  {[]fault.Rule{{Method: "getSignatureStatuses", Outcome: fault.OutcomeSucceeds}}, unsent, "finalized null"},
		"unsent, reported as failed":  {[]fault.Rule{{Outcome: fault.OutcomeFails, Err: falseErr}}, unsent, "finalized " + falseErr},
		"landed, reported as unknown": {[]fault.Rule{{Method: "getSignatureStatuses", Empty: true}}, landed, "unknown"},
		"a fault of another method":   {[]fault.Rule{{Method: "simulateTransaction", Outcome: fault.OutcomeSucceeds}}, unsent, "unknown"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			out := f.withFaults(test.rules...).call("getSignatureStatuses", `[["`+test.signature.String()+`"],{"searchTransactionHistory":true}]`)
			var response struct {
				Value []*struct {
					Slot               uint64
					ConfirmationStatus string
					Err                json.RawMessage
				}
			}
			if err := json.Unmarshal(out.Result, &response); err != nil {
				t.Fatal(err)
			}
			got := "unknown"
			if v := response.Value[0]; v != nil {
				got = v.ConfirmationStatus + " " + string(v.Err)
				if final := f.positions().slot; v.Slot > final {
					t.Errorf("slot %d, want at most the finalized slot %d", v.Slot, final)
				}
			}
			if got != test.want {
				t.Errorf("the answer is %s, want %s", got, test.want)
			}
		})
	}
}

func TestFalseSimulationOutcomes(t *testing.T) {
	t.Parallel()
	f := newFixture(t, localnet.Options{})
	tests := map[string]struct {
		rules []fault.Rule
		// lamports is the amount of the transfer: 1 000 000, or more than the payer has.
		lamports             uint64
		want                 string
		wantSend, wantLanded bool
	}{
		"success, reported as failure":       {[]fault.Rule{{Outcome: fault.OutcomeFails, Err: falseErr}}, 1_000_000, falseErr, false, false},
		"failure, reported as success":       {[]fault.Rule{{Outcome: fault.OutcomeSucceeds}}, 1 << 60, "null", true, true},
		"failure, reported as failure":       {nil, 1 << 60, `{"InstructionError":[0,{"Custom":1}]}`, false, false},
		"a fault of another method":          {[]fault.Rule{{Method: "getSignatureStatuses", Outcome: fault.OutcomeFails, Err: falseErr}}, 1_000_000, "null", true, true},
		"failure, success in preflight only": {[]fault.Rule{{Method: "sendTransaction", Outcome: fault.OutcomeSucceeds}}, 1 << 60, `{"InstructionError":[0,{"Custom":1}]}`, true, true},
	}
	extra := uint64(0) // makes each transfer another transaction
	for name, test := range tests {
		extra++
		t.Run(name, func(t *testing.T) {
			faulty := f.withFaults(test.rules...)
			tx := f.sign(f.blockhash(rpc.CommitmentProcessed), f.transfer(test.lamports+extra))
			encoded, err := tx.ToBase64()
			if err != nil {
				t.Fatal(err)
			}
			var response struct {
				Value struct{ Err json.RawMessage }
			}
			if err := json.Unmarshal(faulty.call("simulateTransaction", `["`+encoded+`",{"encoding":"base64","commitment":"processed"}]`).Result, &response); err != nil {
				t.Fatal(err)
			}
			if got := string(response.Value.Err); got != test.want {
				t.Errorf("the simulation returns error %s, want %s", got, test.want)
			}
			_, err = faulty.SendTransactionWithOpts(context.Background(), tx, rpc.TransactionOpts{PreflightCommitment: rpc.CommitmentProcessed})
			if (err == nil) != test.wantSend || err != nil && !strings.Contains(err.Error(), "simulation failed") {
				t.Errorf("the send returns %v; the transaction has to be accepted: %t", err, test.wantSend)
			}
			if got := f.landed(tx.Signatures[0]); got != test.wantLanded {
				t.Errorf("the transaction landed: %t, want %t", got, test.wantLanded)
			}
		})
	}
}
