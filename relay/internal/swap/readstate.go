package swap

import (
	"context"
	"errors"
	"fmt"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// forkSlots is the number of slots after the first leg in which a fork may still undo the leg.
// A blockhash is valid for the same number of slots. Finality takes only a fraction of them.
const forkSlots = 150

// observe reads the swap's accounts, all at one slot. This slot is at least minContextSlot, and
// at least the slot of the first leg.
func (s *Planner) observe(ctx context.Context, c *submission.Submission, tries int, minContextSlot uint64) (*snapshot, error) {
	if c.Call == nil || c.Call.Swap == nil || c.Swap == nil {
		return nil, errors.New("the row has no call of a first leg or no record of a swap, so it is not the second leg of a swap")
	}
	first := s.routerTurn(tries)
	r := &snapshot{submission: c, terms: *c.Call.Swap, at: s.now(), first: first, level: s.memory.level(c.ID, first)}
	var err error
	if r.accounts, err = s.pool.Swap(c.Call.Inputs.Nullifiers[0], r.terms); err != nil {
		return nil, err
	}
	if c.Swap.TimeoutSlot > s.pool.Profile.SwapTimeout {
		r.firstLegSlot = c.Swap.TimeoutSlot - s.pool.Profile.SwapTimeout
	}
	keys := []solana.PublicKey{r.accounts.State, r.accounts.WSOL, r.accounts.Output, r.terms.RecipientATA}
	found, slot, err := s.chain.Accounts(ctx, keys, onchain.Confirmed, max(minContextSlot, r.firstLegSlot))
	if err != nil {
		return nil, fmt.Errorf("read the swap's accounts: %w", err)
	}
	r.lastSlots = lastSlots(s.slotDuration())
	r.slot, r.timeout, r.recentlyFunded = slot, c.Swap.TimeoutSlot, slot < r.firstLegSlot+forkSlots
	s.readState(r, found[0])
	s.ignoreFalseSlot(r)
	owner, err := s.findWallet(r, found[3])
	if err != nil {
		return nil, err
	}
	var wsol *shieldpool.TokenAccount
	r.wsol, wsol = tokenFact(found[1], r.accounts.State, solana.WrappedSol)
	r.output, _ = tokenFact(found[2], r.accounts.State, r.terms.OutputMint)
	r.recipient, _ = tokenFact(found[3], owner, r.terms.OutputMint)
	r.wrapped = wsol != nil && wsol.Native && wsol.Amount > 0 && wsol.Amount >= r.lamports
	return r, nil
}

// readState decodes the state's account a into the snapshot.
func (s *Planner) readState(r *snapshot, a *onchain.Account) {
	if a == nil || !a.Owner.Equals(s.pool.Profile.ProgramID) {
		r.state = stateMissing
		return
	}
	state, err := shieldpool.ParseSwapState(a.Data)
	reported := shieldpool.SwapTerms{}
	if err == nil {
		reported = shieldpool.SwapTerms{OutputMint: state.OutputMint, RecipientATA: state.RecipientATA, MinOutput: state.MinOutput}
	}
	if err != nil || reported != r.terms || state.Nullifier != r.accounts.Nullifier || state.Lamports == 0 || !s.hasPossibleSlots(state, r.slot) {
		// The state's timeout is doubtful too, so r.timeout stays the recorded one.
		r.state = stateWrong
		return
	}
	if s.chain.Corroborated(r.slot) { // the search for the end would begin after a false slot
		s.remember(r, func(tries *earlierTries) { tries.stateSeen = max(tries.stateSeen, r.slot) })
	}
	r.state, r.lamports, r.timeout = stateHeld, state.Lamports, state.TimeoutSlot
}

// hasPossibleSlots reports whether the state's creation slot and timeout slot fit together, and
// fit the slot at which the state was read.
func (s *Planner) hasPossibleSlots(state *shieldpool.SwapState, readAt uint64) bool {
	return state.CreatedSlot < state.TimeoutSlot && state.CreatedSlot <= readAt && state.TimeoutSlot-state.CreatedSlot <= s.pool.Profile.SwapTimeout
}

// tokenFact classifies the account at a token account's address. An account that has only
// lamports from a stranger counts as missing: the token account can still be created there.
func tokenFact(a *onchain.Account, owner, mint solana.PublicKey) (accountFact, *shieldpool.TokenAccount) {
	if a == nil || a.Owner.Equals(solana.SystemProgramID) && len(a.Data) == 0 {
		return accountMissing, nil
	}
	if !a.Owner.Equals(solana.TokenProgramID) {
		return accountUnusable, nil
	}
	t, err := shieldpool.ParseTokenAccount(a.Data)
	switch {
	case err != nil || !t.Owner.Equals(owner) || !t.Mint.Equals(mint):
		return accountUnusable, nil
	case t.Frozen:
		return accountFrozen, t
	default:
		return accountReady, t
	}
}
