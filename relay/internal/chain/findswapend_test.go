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

// inside is a transaction that calls ix from another program, and its meta.
func inside(t *testing.T, signature solana.Signature, ix solana.Instruction) (raw []byte, meta string) {
	t.Helper()
	data, err := ix.Data()
	if err != nil {
		t.Fatal(err)
	}
	raw = signedBy(t, signature, solana.NewInstruction(router, append(slices.Clone(ix.Accounts()), solana.Meta(ix.ProgramID())), []byte{1}))
	at := make([]string, len(ix.Accounts()))
	for i, a := range ix.Accounts() {
		at[i] = fmt.Sprint(indexIn(t, raw, a.PublicKey))
	}
	return raw, fmt.Sprintf(`,"innerInstructions":[{"index":0,"instructions":[{"programIdIndex":%d,"accounts":[%s],"data":%q}]}]`,
		indexIn(t, raw, ix.ProgramID()), strings.Join(at, ","), solana.Base58(data).String())
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
	begin := must(pool.Instruction(payerKey, &shieldpool.Call{
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
	nested, innerMeta := inside(t, sigA, execute)
	routed := landed(nested, balances(accountsOf(t, nested))+innerMeta)

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
		"an execution":                                {history: []listed{{sigA, 9, landedAs(sigA, execute)}}, want: executed},
		"an execution called by another program":      {history: []listed{{sigA, 9, routed}}, want: executed},
		"a refund":                                    {history: []listed{{sigA, 9, landedAs(sigA, refund)}}, want: refunded},
		"a refund of wrapped lamports":                {history: []listed{{sigA, 9, landedAs(sigA, unwrapped)}}, want: refunded},
		"a refund below litter":                       {history: []listed{{sigB, 10, landedAs(sigB, gift)}, {sigA, 9, landedAs(sigA, refund)}}, want: refunded},
		"an execution in the slot of the beginning":   {history: []listed{{sigB, 9, landedAs(sigB, begin)}, {sigA, 9, landedAs(sigA, execute)}}, want: executed},
		"what is older than the beginning is let be":  {history: []listed{{sigB, 9, landedAs(sigB, begin)}, {sigA, 8, landedAs(sigA, gift)}}, wantReads: 1},
		"litter of later slots is let be":             {history: []listed{{sigB, 11, landedAs(sigB, gift)}, {sigA, 9, landedAs(sigA, refund)}}, want: refunded, wantReads: 1},
		"a swap that is not settled":                  {history: []listed{{sigB, 10, landedAs(sigB, prepare)}, {sigA, 9, landedAs(sigA, begin)}}, wantReads: 2},
		"an execution that failed":                    {history: []listed{{sigA, 9, failed(sigA, execute)}}},
		"another swap's end that names the state":     {history: []listed{{sigA, 9, landedAs(sigA, must(other.Close(payerKey, swap.State, false)))}}},
		"another program's instruction":               {history: []listed{{sigA, 9, landedAs(sigA, imitation)}}},
		"no history":                                  {},
		"a transaction that is listed and not there":  {history: []listed{{sigA, 9, "null"}}, wantKind: onchain.KindNotYet},
		"a transaction that is another than is asked": {history: []listed{{sigA, 9, landedAs(sigB, execute)}}, wantKind: onchain.KindBadResponse},
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
					return says("[]")
				}
				if !strings.Contains(params, swap.State.String()) {
					t.Error("the history of another address is asked for")
				}
				return says("[" + strings.Join(lines, ",") + "]")
			}
			n["a"].transaction = func(params string) reply {
				for _, l := range test.history {
					if strings.Contains(params, l.signature.String()) {
						return says(l.transaction)
					}
				}
				return says("null")
			}
			e, _ := newEndpoints(t, n, of("a"), func(o *EndpointsOptions) { o.Timeout = time.Second })
			got, err := e.FindSwapEnd(t.Context(), swap, 9, 10)
			if test.wantKind != "" {
				checkError(t, err, test.wantKind, 0, nil)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("settlement differs (-want +got):\n%s", diff)
			}
			if reads := n["a"].count("getTransaction"); test.wantReads > 0 && reads != test.wantReads {
				t.Errorf("%d transactions were read, want %d", reads, test.wantReads)
			}
		})
	}
	e, _ := newEndpoints(t, newNetwork("a"), of("a"), nil)
	for name, swap := range map[string]*shieldpool.Swap{"none": nil, "of the zero nullifier": testSwap(t, pool, 0)} {
		if _, err := e.FindSwapEnd(t.Context(), swap, 0, math.MaxUint64); err == nil {
			t.Errorf("the settlement of a swap that is %s is looked for", name)
		}
	}
}

func TestFindSwapEndAsksAnotherEndpoint(t *testing.T) {
	t.Parallel()
	pool := testPool(t)
	swap := testSwap(t, pool, 5)
	raw := signedBy(t, sigA, instruction(t)(swap.Close(payerKey, keyB, false)))
	n := newNetwork("archive", "other")
	n["archive"].page = func(string) reply { return says("[]") }
	n["archive"].set("getMultipleAccounts", says(`{"context":{"slot":100},"value":[null]}`)) // it has ended there, too
	n["other"].page = func(params string) reply {
		if strings.Contains(params, `"before"`) {
			return says("[]")
		}
		return says(fmt.Sprintf(`[{"signature":%q,"slot":7,"err":null,"confirmationStatus":"confirmed"}]`, sigA))
	}
	n["other"].set("getTransaction", says(landed(raw, balances(accountsOf(t, raw)))))
	e, _ := newEndpoints(t, n, archives("archive", "other"), nil)
	got, err := e.FindSwapEnd(t.Context(), swap, 0, math.MaxUint64)
	if err != nil {
		t.Fatal(err)
	}
	want := &onchain.SwapEnd{How: shieldpool.Refunded, Signature: sigA, Slot: 7, Confirmation: onchain.Confirmed, FeePayer: payerKey}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settlement differs (-want +got):\n%s", diff)
	}
	// An endpoint that does not answer may know.
	n["archive"].fail(sick)
	n["other"].page = func(string) reply { return says("[]") }
	if _, err := e.FindSwapEnd(t.Context(), swap, 0, math.MaxUint64); err == nil {
		t.Error("a swap counts as not settled while an endpoint that may know does not answer")
	}
}
