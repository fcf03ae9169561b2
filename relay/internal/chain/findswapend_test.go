package chain

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

func testSwap(t *testing.T, pool *shieldpool.Pool, nullifier byte) *shieldpool.Swap {
	t.Helper()
	swap, err := pool.Swap([32]byte{31: nullifier}, shieldpool.SwapTerms{OutputMint: keyA, RecipientATA: keyB, MinOutput: 9})
	if err != nil {
		t.Fatal(err)
	}
	return swap
}

func instruction(t *testing.T) func(solana.Instruction, error) solana.Instruction {
	return func(ix solana.Instruction, err error) solana.Instruction {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return ix
	}
}

// innerCall returns a transaction in which another program calls ix, and its meta.
func innerCall(t *testing.T, signature solana.Signature, ix solana.Instruction) (raw []byte, meta string) {
	t.Helper()
	data, err := ix.Data()
	if err != nil {
		t.Fatal(err)
	}
	raw = signedBy(t, signature, solana.NewInstruction(router, append(slices.Clone(ix.Accounts()), solana.Meta(ix.ProgramID())), []byte{1}))
	indexes := make([]string, len(ix.Accounts()))
	for i, a := range ix.Accounts() {
		indexes[i] = fmt.Sprint(indexIn(t, raw, a.PublicKey))
	}
	return raw, fmt.Sprintf(`,"innerInstructions":[{"index":0,"instructions":[{"programIdIndex":%d,"accounts":[%s],"data":%q}]}]`,
		indexIn(t, raw, ix.ProgramID()), strings.Join(indexes, ","), solana.Base58(data).String())
}

func TestFindSwapEnd(t *testing.T) {
	t.Parallel()
	pool := testPool(t)
	swap, other := testSwap(t, pool, 5), testSwap(t, pool, 7)
	must := instruction(t)
	execute := must(swap.Execute(payerKey, router, []*solana.AccountMeta{solana.Meta(keyA)}, []byte{1, 2}))
	refund := must(swap.Close(payerKey, keyB, false))
	unwrapped := must(swap.Close(payerKey, keyB, true))
	prepare := must(swap.Prepare(payerKey))
	start := must(pool.Instruction(payerKey, &shieldpool.Call{
		Proof:       make([]byte, shieldpool.ProofLength),
		Inputs:      &shieldpool.PublicInputs{PublicAmount: -9, MintAddress: pool.Mint.Field, Nullifiers: [2][32]byte{swap.Nullifier, {31: 6}}},
		Destination: shieldpool.Destination{Swap: &swap.Terms},
	}))
	gift := solana.NewInstruction(solana.SystemProgramID, solana.AccountMetaSlice{solana.Meta(payerKey).SIGNER().WRITE(), solana.Meta(swap.State).WRITE()}, []byte{2})
	data, err := execute.Data()
	if err != nil {
		t.Fatal(err)
	}
	imitation := solana.NewInstruction(router, execute.Accounts(), data)

	landedAs := func(signature solana.Signature, ix solana.Instruction) string {
		raw := signedBy(t, signature, ix)
		return landed(raw, balances(accountsOf(t, raw)))
	}
	failed := func(signature solana.Signature, ix solana.Instruction) string {
		return strings.Replace(landedAs(signature, ix), `"err":null`, `"err":"AccountInUse"`, 1)
	}
	nested, innerMeta := innerCall(t, sigA, execute)
	routedResult := landed(nested, balances(accountsOf(t, nested))+innerMeta)

	type listed struct {
		signature   solana.Signature
		slot        int
		transaction string
	}
	executed := &onchain.SwapEnd{How: shieldpool.Executed, Signature: sigA, Slot: 7, Confirmation: onchain.Finalized, FeePayer: payerKey}
	refunded := &onchain.SwapEnd{How: shieldpool.Refunded, Signature: sigA, Slot: 7, Confirmation: onchain.Finalized, FeePayer: payerKey}
	tests := map[string]struct {
		history   []listed // newest first
		want      *onchain.SwapEnd
		wantReads int // 0 for any
		wantKind  string
	}{
		"an execution":                                      {history: []listed{{sigA, 9, landedAs(sigA, execute)}}, want: executed},
		"an execution called by another program":            {history: []listed{{sigA, 9, routedResult}}, want: executed},
		"a refund":                                          {history: []listed{{sigA, 9, landedAs(sigA, refund)}}, want: refunded},
		"a refund of wrapped lamports":                      {history: []listed{{sigA, 9, landedAs(sigA, unwrapped)}}, want: refunded},
		"a refund before an unrelated transaction":          {history: []listed{{sigB, 10, landedAs(sigB, gift)}, {sigA, 9, landedAs(sigA, refund)}}, want: refunded},
		"an execution in the slot of the swap's start":      {history: []listed{{sigB, 9, landedAs(sigB, start)}, {sigA, 9, landedAs(sigA, execute)}}, want: executed},
		"transactions before the swap's start are not read": {history: []listed{{sigB, 9, landedAs(sigB, start)}, {sigA, 8, landedAs(sigA, gift)}}, wantReads: 1},
		"transactions after the last slot are not read":     {history: []listed{{sigB, 11, landedAs(sigB, gift)}, {sigA, 9, landedAs(sigA, refund)}}, want: refunded, wantReads: 1},
		"a swap that has not ended":                         {history: []listed{{sigB, 10, landedAs(sigB, prepare)}, {sigA, 9, landedAs(sigA, start)}}, wantReads: 2},
		"an execution that failed":                          {history: []listed{{sigA, 9, failed(sigA, execute)}}},
		"another swap's end that names the state":           {history: []listed{{sigA, 9, landedAs(sigA, must(other.Close(payerKey, swap.State, false)))}}},
		"another program's instruction":                     {history: []listed{{sigA, 9, landedAs(sigA, imitation)}}},
		"no history":                                        {},
		"a listed transaction that is not found":            {history: []listed{{sigA, 9, "null"}}, wantKind: onchain.KindNotYet},
		"another transaction than the requested one":        {history: []listed{{sigA, 9, landedAs(sigB, execute)}}, wantKind: onchain.KindBadResponse},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNetwork("a")
			lines := make([]string, len(test.history))
			for i, l := range test.history {
				lines[i] = fmt.Sprintf(`{"signature":%q,"slot":%d,"err":null,"confirmationStatus":"finalized"}`, l.signature, l.slot)
			}
			n["a"].page = func(params string) reply {
				if strings.Contains(params, `"before"`) {
					return resultReply("[]")
				}
				if !strings.Contains(params, swap.State.String()) {
					t.Error("the history of another address than the swap's state was requested")
				}
				return resultReply("[" + strings.Join(lines, ",") + "]")
			}
			n["a"].transaction = func(params string) reply {
				for _, l := range test.history {
					if strings.Contains(params, l.signature.String()) {
						return resultReply(l.transaction)
					}
				}
				return resultReply("null")
			}
			e, _ := newEndpoints(t, n, endpointsNamed("a"), func(o *EndpointsOptions) { o.Timeout = time.Second })
			got, err := e.FindSwapEnd(t.Context(), swap, 9, 10)
			if test.wantKind != "" {
				checkError(t, err, test.wantKind, 0, nil)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("end of the swap differs (-want +got):\n%s", diff)
			}
			if reads := n["a"].count("getTransaction"); test.wantReads > 0 && reads != test.wantReads {
				t.Errorf("%d transactions are read, want %d", reads, test.wantReads)
			}
		})
	}
	e, _ := newEndpoints(t, newNetwork("a"), endpointsNamed("a"), nil)
	for name, swap := range map[string]*shieldpool.Swap{"nil": nil, "for the zero nullifier": testSwap(t, pool, 0)} {
		if _, err := e.FindSwapEnd(t.Context(), swap, 0, math.MaxUint64); err == nil {
			t.Errorf("finding the end of a swap that is %s returned no error", name)
		}
	}
}

func TestFindSwapEndAsksAnotherEndpoint(t *testing.T) {
	t.Parallel()
	pool := testPool(t)
	swap := testSwap(t, pool, 5)
	raw := signedBy(t, sigA, instruction(t)(swap.Close(payerKey, keyB, false)))
	n := newNetwork("archive", "other")
	n["archive"].page = func(string) reply { return resultReply("[]") }
	n["archive"].set("getMultipleAccounts", resultReply(`{"context":{"slot":100},"value":[null]}`)) // the swap has ended at the archive, too
	n["other"].page = func(params string) reply {
		if strings.Contains(params, `"before"`) {
			return resultReply("[]")
		}
		return resultReply(fmt.Sprintf(`[{"signature":%q,"slot":7,"err":null,"confirmationStatus":"confirmed"}]`, sigA))
	}
	n["other"].set("getTransaction", resultReply(landed(raw, balances(accountsOf(t, raw)))))
	e, _ := newEndpoints(t, n, archiveFirst("archive", "other"), nil)
	got, err := e.FindSwapEnd(t.Context(), swap, 0, math.MaxUint64)
	if err != nil {
		t.Fatal(err)
	}
	want := &onchain.SwapEnd{How: shieldpool.Refunded, Signature: sigA, Slot: 7, Confirmation: onchain.Confirmed, FeePayer: payerKey}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("end of the swap differs (-want +got):\n%s", diff)
	}
	// The archive does not answer, and may know the end.
	n["archive"].fail(serverError)
	n["other"].page = func(string) reply { return resultReply("[]") }
	if _, err := e.FindSwapEnd(t.Context(), swap, 0, math.MaxUint64); err == nil {
		t.Error("no error although an endpoint that may know the end of the swap does not answer")
	}
}
