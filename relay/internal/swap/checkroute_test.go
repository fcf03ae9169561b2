package swap

import (
	"errors"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// TestHostileRoutesAreRejected: every route that must not be signed is rejected and
// counted each time, and logged once. The refund after the timeout stays possible.
func TestHostileRoutesAreRejected(t *testing.T) {
	t.Parallel()
	addAccount := func(k solana.PublicKey, signer, writable bool) func(*world, *Instructions) {
		return func(_ *world, ix *Instructions) {
			ix.Accounts = append(ix.Accounts, solana.AccountMeta{PublicKey: k, IsSigner: signer, IsWritable: writable})
		}
	}
	namesAccount := func(k func(*world) solana.PublicKey) func(*world, *Instructions) {
		return func(w *world, ix *Instructions) { addAccount(k(w), false, false)(w, ix) }
	}
	ata := func(owner, mint solana.PublicKey) solana.PublicKey {
		a, err := shieldpool.AssociatedTokenAccount(owner, mint)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	nullifier := func(i int) func(w *world) solana.PublicKey {
		return func(w *world) solana.PublicKey {
			a, _, err := w.pool.Nullifier(w.submission.Call.Inputs.Nullifiers[i])
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
	}
	withTable := func(publish func(*world)) func(*world, *Instructions) {
		return func(w *world, ix *Instructions) {
			publish(w)
			ix.LookupTables = append(ix.LookupTables, key(61))
		}
	}
	tests := map[string]struct {
		change func(*world, *Instructions)
		want   string
	}{
		"another program":          {func(_ *world, ix *Instructions) { ix.Program = key(70) }, RejectedProgram},
		"the pool's program":       {func(w *world, ix *Instructions) { ix.Program = w.pool.Profile.ProgramID }, RejectedProgram},
		"the token program":        {func(_ *world, ix *Instructions) { ix.Program = solana.TokenProgramID }, RejectedProgram},
		"a stranger signs":         {addAccount(key(70), true, false), RejectedSigner},
		"the payer signs":          {addAccount(key(50), true, true), RejectedSigner},
		"the payer is read":        {addAccount(key(50), false, false), RejectedAccount},
		"another payer is written": {addAccount(key(51), false, true), RejectedAccount},
		"the payer's wrapped SOL":  {addAccount(ata(key(50), solana.WrappedSol), false, true), RejectedAccount},
		"another payer's token account of the output mint": {addAccount(ata(key(51), key(3)), false, true), RejectedAccount},
		"the pool":                                    {namesAccount(func(w *world) solana.PublicKey { return w.pool.Address }), RejectedAccount},
		"the pool's program among the accounts":       {namesAccount(func(w *world) solana.PublicKey { return w.pool.Profile.ProgramID }), RejectedAccount},
		"the tree":                                    {namesAccount(func(w *world) solana.PublicKey { return w.pool.MerkleTree }), RejectedAccount},
		"the treasury":                                {namesAccount(func(w *world) solana.PublicKey { return w.pool.Treasury }), RejectedAccount},
		"the first nullifier":                         {namesAccount(nullifier(0)), RejectedAccount},
		"the second nullifier":                        {namesAccount(nullifier(1)), RejectedAccount},
		"the recipient's wallet":                      {namesAccount(func(w *world) solana.PublicKey { return w.wallet }), RejectedAccount},
		"the recipient's token account":               {namesAccount(func(w *world) solana.PublicKey { return w.swap.Terms.RecipientATA }), RejectedAccount},
		"the state is written":                        {func(_ *world, ix *Instructions) { ix.Accounts[1].IsWritable = true }, RejectedAccount},
		"the state is written in an additional entry": {func(w *world, ix *Instructions) { addAccount(w.swap.State, false, true)(w, ix) }, RejectedAccount},
		"another user's wrapped SOL":                  {func(_ *world, ix *Instructions) { ix.Accounts[2].PublicKey = key(70) }, RejectedAccount},
		"another user's output":                       {func(_ *world, ix *Instructions) { ix.Accounts[3].PublicKey = key(70) }, RejectedAccount},
		"an output that cannot be written":            {func(_ *world, ix *Instructions) { ix.Accounts[3].IsWritable = false }, RejectedAccount},
		"no accounts at all":                          {func(_ *world, ix *Instructions) { ix.Accounts = nil }, RejectedAccount},
		"more tables than the relay reads":            {func(_ *world, ix *Instructions) { ix.LookupTables = make([]solana.PublicKey, 9) }, RejectedTable},
		"a table that does not exist":                 {withTable(func(*world) {}), RejectedTable},
		"a table of another program": {withTable(func(w *world) {
			w.putTable(key(61))
			w.chain.accounts[key(61)].Owner = key(70)
		}), RejectedTable},
		"a table that is being closed": {withTable(func(w *world) {
			w.putTable(key(61))
			w.chain.accounts[key(61)].Data[4] = 0
		}), RejectedTable},
		"a malformed table": {withTable(func(w *world) {
			w.putTable(key(61))
			w.chain.accounts[key(61)].Data[0] = 2
		}), RejectedTable},
		"a table with too many addresses": {withTable(func(w *world) { w.putTable(key(61), make([]solana.PublicKey, 257)...) }), RejectedTable},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, (*world).createTokenAccounts)
			w.router.changeIx = func(ix *Instructions) { test.change(w, ix) }
			for range 2 {
				order, err := w.next()
				wait := checkWait(t, w, err, ReasonRouteRejected)
				var rejected *RejectedRoute
				if !errors.As(wait.Cause, &rejected) || rejected.What != test.want || order.Draft != nil {
					t.Fatalf("cause is %v, draft %v; want rejection %s and no draft", wait.Cause, order.Draft, test.want)
				}
			}
			if diff := cmp.Diff([]string{test.want, test.want}, w.events.rejected); diff != "" {
				t.Errorf("rejections counted (-want +got)\n%s", diff)
			}
			if logged := countLines(w.events.log.String()); logged != 1 {
				t.Errorf("the rejection is logged %d times, want once:\n%s", logged, w.events.log.String())
			}
			w.chain.slot = testTimeout
			order, err := w.next()
			if err != nil || order.Draft == nil || order.Draft.Purpose != txmgr.PurposeRefund {
				t.Fatalf("past the timeout the order is %+v, %v, want a refund", order, err)
			}
			w.decode(order.Draft)
		})
	}
}

func countLines(s string) (n int) {
	for _, b := range []byte(s) {
		if b == '\n' {
			n++
		}
	}
	return n
}

// TestQuoteForAnotherRequestIsRejected: a quote for another request is rejected, and one that the client already
// rejected is not counted again.
func TestQuoteForAnotherRequestIsRejected(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change    func(*Quote)
		err       error
		wantCount []string
	}{
		"a smaller input":                  {func(q *Quote) { q.InAmount-- }, nil, []string{RejectedAmount}},
		"a larger input":                   {func(q *Quote) { q.InAmount++ }, nil, []string{RejectedAmount}},
		"a threshold above the output":     {func(q *Quote) { q.Threshold = q.OutAmount + 1 }, nil, []string{RejectedThreshold}},
		"a quote that the client rejected": {nil, &RejectedRoute{What: RejectedOutputMint}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, (*world).createTokenAccounts)
			w.router.changeQuote = test.change
			w.router.quoteErr = func(QuoteRequest) error { return test.err }
			_, err := w.next()
			checkWait(t, w, err, ReasonRouteRejected)
			if diff := cmp.Diff(test.wantCount, w.events.rejected); diff != "" {
				t.Errorf("rejections counted (-want +got)\n%s", diff)
			}
		})
	}
}

// FuzzCheck: an instruction is drafted only if it names no forbidden account, has no
// signer except the state, and writes the swap's own token accounts.
func FuzzCheck(f *testing.F) {
	f.Add([]byte{}, []byte{})
	f.Add([]byte{0, 0, 1, 1, 2, 2, 3, 2}, []byte{1})
	f.Add([]byte{1, 1, 2, 2, 3, 2, 4, 0}, []byte{1})
	f.Add([]byte{1, 3, 2, 2, 3, 2}, []byte{1})
	f.Fuzz(func(t *testing.T, accounts, data []byte) {
		w := newWorld(t, (*world).createTokenAccounts)
		nullifier, _, err := w.pool.Nullifier(w.swap.Nullifier)
		if err != nil {
			t.Fatal(err)
		}
		payerATA, err := shieldpool.AssociatedTokenAccount(key(51), solana.WrappedSol)
		if err != nil {
			t.Fatal(err)
		}
		candidates := []solana.PublicKey{
			solana.TokenProgramID, w.swap.State, w.swap.WSOL, w.swap.Output,
			// a router must not name the following accounts
			w.payer, key(51), payerATA, w.pool.Address, w.pool.MerkleTree, w.pool.Treasury, w.pool.Profile.ProgramID, nullifier, w.wallet, w.swap.Terms.RecipientATA,
		}
		const allowedAccounts = 4
		allowed, wrote := true, map[solana.PublicKey]bool{}
		ix := &Instructions{Program: key(7), Data: data}
		for i := 0; i+1 < len(accounts); i += 2 {
			a := solana.AccountMeta{PublicKey: key(8, accounts[i]), IsSigner: accounts[i+1]&1 > 0, IsWritable: accounts[i+1]&2 > 0}
			if at := int(accounts[i]); at < len(candidates) {
				a.PublicKey = candidates[at]
				allowed = allowed && at < allowedAccounts
			}
			isState := a.PublicKey == w.swap.State
			allowed = allowed && (!a.IsSigner || isState) && (!isState || !a.IsWritable)
			wrote[a.PublicKey] = wrote[a.PublicKey] || a.IsWritable
			ix.Accounts = append(ix.Accounts, a)
		}
		allowed = allowed && wrote[w.swap.WSOL] && wrote[w.swap.Output]
		w.router.changeIx = func(got *Instructions) { *got = *ix }
		order, err := w.next()
		wait := (*txmgr.Deferral)(nil)
		switch {
		case err == nil:
			if !allowed {
				t.Fatalf("a forbidden instruction is drafted: %+v", ix.Accounts)
			}
			w.decode(order.Draft)
		case !errors.As(err, &wait):
			t.Fatalf("error is %v", err)
		case allowed && wait.Reason != ReasonRouteTooLarge || !allowed && wait.Reason != ReasonRouteRejected && wait.Reason != ReasonRouteTooLarge:
			t.Fatalf("the swap is deferred for %s although the instruction is allowed: %v", wait.Reason, allowed)
		}
	})
}
