package txmgr_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// realMint creates a mint on the local chain, and waits until it is confirmed.
func (w *world) realMint() solana.PublicKey {
	w.t.Helper()
	mint, err := w.chain.CreateMint(6, nil)
	must(w.t, err)
	w.eventually("the mint is confirmed", func() bool {
		seen, err := w.state.Tokens(w.t.Context(), mint, mint)
		must(w.t, err)
		return seen.Mint != nil
	})
	return mint
}

// confirmed waits until a transaction that the relay did not send is confirmed.
func (w *world) confirmed(sig solana.Signature) {
	w.t.Helper()
	w.eventually("the transaction is confirmed", func() bool {
		st, _, err := w.rpc.Statuses(w.t.Context(), []solana.Signature{sig})
		must(w.t, err)
		return st[0] != nil && st[0].Confirmation.AtLeast(onchain.Confirmed)
	})
}

// swapIntoRealToken is a valid swap into a mint of the local chain.
func (w *world) swapIntoRealToken(mint solana.PublicKey) *swapCase {
	c := w.swap(&tokenState{held: map[solana.PublicKey]*onchain.Account{}})
	c.terms.OutputMint = mint
	c.derive(c.wallet)
	return c
}

// TestSwapsIntoRealTokenAccounts checks swaps against accounts that the real programs made.
func TestSwapsIntoRealTokenAccounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mint := w.realMint()
	holds := func(c *swapCase) {
		_, sig, err := w.chain.MintTo(mint, c.wallet, 5)
		must(t, err)
		w.confirmed(sig)
	}
	tests := map[string]struct {
		change func(*swapCase)
		want   refusal.Code // empty when the swap is accepted
	}{
		"a token account that does not exist":           {func(*swapCase) {}, ""},
		"a token account that exists":                   {holds, ""},
		"a token account that exists, and no recipient": {func(c *swapCase) { holds(c); c.req.Recipient = "" }, ""},
		"no token account, and no recipient":            {func(c *swapCase) { c.req.Recipient = "" }, refusal.RecipientRequired},
		"a token account that is frozen": {func(c *swapCase) {
			holds(c)
			sig, err := w.chain.Freeze(mint, c.wallet)
			must(t, err)
			w.confirmed(sig)
		}, refusal.InvalidSwap},
		"a mint that does not exist": {func(c *swapCase) {
			c.terms.OutputMint = w.newKey().PublicKey()
			c.derive(c.wallet)
		}, refusal.InvalidSwap},
		"a mint that is a wallet": {func(c *swapCase) {
			c.terms.OutputMint = w.payer.PublicKey()
			c.derive(c.wallet)
		}, refusal.InvalidSwap},
		"a mint that is a token account": {func(c *swapCase) {
			holds(c)
			c.terms.OutputMint = c.terms.RecipientATA
			c.derive(c.wallet)
		}, refusal.InvalidSwap},
		"a mint that is the pool's tree": {func(c *swapCase) {
			c.terms.OutputMint = w.pool.MerkleTree
			c.derive(c.wallet)
		}, refusal.InvalidSwap},
	}
	r := w.relay(nil)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := w.swapIntoRealToken(mint)
			tt.change(c)
			s, err := r.Submit(t.Context(), c.request())
			if tt.want != "" {
				_ = wantCode(t, err, tt.want)
				return
			}
			must(t, err)
			if !s.Call.Recipient.Equals(c.wallet) {
				t.Errorf("the swap pays %s, want the owner of the token account, %s", s.Call.Recipient, c.wallet)
			}
		})
	}
}

// TestSwapFirstLegFundsSwapState checks the swap state account and the reported status after the first leg.
func TestSwapFirstLegFundsSwapState(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.relay(nil)
	api := w.serve(r)
	c := w.swapIntoRealToken(w.realMint())
	req := c.request()
	w.run(r)
	status, body := api.post(t, req, "Prefer", "wait=60")
	data, _ := body["data"].(map[string]any)
	if status != http.StatusOK || data["status"] != "processing" || data["swap_phase"] != "funded" || body["signature"] == nil {
		t.Fatalf("answered %d: %v, want 200 and a funded swap", status, body)
	}
	id, err := uuid.Parse(fmt.Sprint(body["request_id"]))
	must(t, err)
	s := w.get(id)
	state, _, err := w.pool.SwapState(c.in.Nullifiers[0])
	must(t, err)
	seen, err := w.state.Tokens(t.Context(), state, state)
	must(t, err)
	onChain, err := shieldpool.ParseSwapState(seen.Mint.Data)
	must(t, err)
	net, _ := w.pool.Profile.Fees.Net(sol)
	want := shieldpool.SwapState{
		Nullifier: c.in.Nullifiers[0], Lamports: net, OutputMint: c.terms.OutputMint, RecipientATA: c.terms.RecipientATA, MinOutput: c.terms.MinOutput,
		CreatedSlot: s.Slot, TimeoutSlot: s.Slot + w.pool.Profile.SwapTimeout, Bump: onChain.Bump,
	}
	if diff := cmp.Diff(want, *onChain); diff != "" {
		t.Errorf("the swap state account (-want +got):\n%s", diff)
	}
	resp, err := api.Client().Get(api.URL + "/status/" + id.String())
	must(t, err)
	defer func() { _ = resp.Body.Close() }()
	var answer struct{ Data map[string]any }
	must(t, json.NewDecoder(resp.Body).Decode(&answer))
	got := map[string]any{}
	for _, name := range []string{"status", "swap_phase", "swap_timeout_slot", "swap_state_pda", "tx_id", "completed_at", "error"} {
		got[name] = answer.Data[name]
	}
	wantData := map[string]any{
		"status": "processing", "swap_phase": "funded", "swap_timeout_slot": float64(onChain.TimeoutSlot), "swap_state_pda": state.String(),
		"tx_id": body["signature"], "completed_at": nil, "error": nil,
	}
	if diff := cmp.Diff(wantData, got); diff != "" || s.State != submission.Completed {
		t.Errorf("the status of a swap whose first leg is %s (-want +got):\n%s", s.State, diff)
	}
}
