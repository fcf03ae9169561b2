package trade_test

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/wallet"
	"github.com/relaypool/relaypool/hack/wallet/simulator"
	"github.com/relaypool/relaypool/hack/wallet/trade"
	"github.com/relaypool/relaypool/relay/groth16"
	"github.com/relaypool/relaypool/relay/merkle"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

var (
	usdc  = solana.MustPublicKeyFromBase58("EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v")
	buyer = solana.MustPublicKeyFromBase58("7v91N7iZ9mNicL8WfG6cgSCKyRXydQjLh6UYBWwm6y1Q")
)

func TestMinimum(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ quoted, bps, want uint64 }{
		"99 % of a quote":                 {20_150_000, 9_900, 19_948_500},
		"a fraction is rounded down":      {999, 9_900, 989},
		"100 %":                           {20_150_000, 10_000, 20_150_000},
		"more than 100 % counts as 100 %": {20_150_000, 10_001, 20_150_000},
		"0 %":                             {20_150_000, 0, 0},
		"100 % of the largest amount":     {math.MaxUint64, 10_000, math.MaxUint64},
		"99.99 % of the largest amount":   {math.MaxUint64, 9_999, 18_444_899_399_302_180_659},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := trade.Minimum(tc.quoted, tc.bps); got != tc.want {
				t.Errorf("minimum %d, want %d", got, tc.want)
			}
		})
	}
}

// The test checks a swap's proof, request and terms as the relay and the program do.
func TestASwapsProofBindsItsTerms(t *testing.T) {
	t.Parallel()
	terms, err := trade.Terms(buyer, usdc, math.MaxUint64)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../circuit/verification_key.json")
	if err != nil {
		t.Fatal(err)
	}
	prover, err := simulator.New(text, simulator.DevelopmentSeed)
	if err != nil {
		t.Fatal(err)
	}
	bound := wallet.SwapExtDataHash(terms)
	in := &shieldpool.PublicInputs{PublicAmount: -20_000_000, ExtDataHash: merkle.Bytes(&bound), Nullifiers: [2][32]byte{{31: 1}, {31: 2}}}
	profile := shieldpool.Development()
	if !profile.BindsDestination(in, shieldpool.Destination{Recipient: buyer, Swap: &terms}) {
		t.Error("the public inputs do not bind the swap's terms")
	}
	for name, change := range map[string]func(*shieldpool.SwapTerms){
		"another mint":    func(o *shieldpool.SwapTerms) { o.OutputMint[0]++ },
		"another account": func(o *shieldpool.SwapTerms) { o.RecipientATA[0]++ },
		"a lower minimum": func(o *shieldpool.SwapTerms) { o.MinOutput-- },
	} {
		other := terms
		change(&other)
		if profile.BindsDestination(in, shieldpool.Destination{Recipient: buyer, Swap: &other}) {
			t.Errorf("the public inputs also bind %s", name)
		}
	}

	proof := prover.Prove(in, 0)
	request, err := trade.Request(proof[:], in.Bytes(), buyer, terms, [][]byte{{1, 2}})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	var body map[string]any
	if err := json.Unmarshal(raw, &body); err != nil {
		t.Fatal(err)
	}
	delete(body, "proof_bytes")
	delete(body, "public_inputs")
	account, _, err := solana.FindAssociatedTokenAddress(buyer, usdc)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"recipient": buyer.String(), "output_mint": usdc.String(), "recipient_ata": account.String(),
		"min_output_amount": "18446744073709551615", "encrypted_notes": []any{"AQI="},
	}
	if diff := cmp.Diff(want, body); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}

	key, err := groth16.ParseKey(text)
	if err != nil {
		t.Fatal(err)
	}
	sent, err := shieldpool.ParsePublicInputs(request.PublicInputs)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := groth16.ParseProof(request.ProofBytes)
	if err != nil {
		t.Fatal(err)
	}
	signals := sent.Signals()
	if _, err := key.Verify(parsed, signals[:]); err != nil {
		t.Error(err)
	}
}
