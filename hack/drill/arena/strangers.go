package arena

import (
	"context"
	"fmt"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"
	"github.com/jackc/pgx/v5"

	"github.com/relaypool/relaypool/hack/drill/gather"
	"github.com/relaypool/relaypool/hack/load"
	"github.com/relaypool/relaypool/hack/localnet/market"
	"github.com/relaypool/relaypool/hack/sandbox"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// These are actions of strangers on swaps between their legs. Anybody can perform each of
// them: the relay must find out what happened and report it correctly.
const (
	// wraps is the action that lands PrepareSwapSol, so that a refund has to unwrap.
	wraps = "wraps"
	// executes is the action that executes the swap at the user's minimum and takes the remaining rent.
	executes = "executes"
	// refunds is the action that closes the swap's state as soon as its timeout has passed.
	refunds = "refunds"
)

func strangerNames() []string { return []string{wraps, executes, refunds} }

const (
	// swapsPerStranger is the number of swaps that a stranger picks.
	swapsPerStranger = 4
	// strangerSwapUnits is more compute than any of these transactions uses.
	strangerSwapUnits = 600_000
	// refundSlots is the number of slots before a timeout at which the swap is picked for a refund.
	refundSlots = 25
)

type openSwap struct {
	*shieldpool.Swap
	wallet  solana.PublicKey
	timeout uint64
}

// meddle has a stranger act on swaps until ctx ends. A failed action is ignored.
func (a *arena) meddle(ctx context.Context, action string) {
	picked := make(map[solana.PublicKey]bool)
	for {
		swaps, _ := a.openSwaps(ctx) // without the database the stranger knows no swaps
		slot, err := a.chainReader.Client.GetSlot(ctx, rpc.CommitmentProcessed)
		for _, s := range swaps {
			switch {
			case err != nil || len(picked) >= swapsPerStranger && !picked[s.State]:
			case action == refunds && slot+refundSlots < s.timeout:
			case action == refunds && slot < s.timeout:
				picked[s.State] = true // acted on after its timeout
			case action == refunds || !picked[s.State]:
				picked[s.State] = true
				a.actOnSwap(ctx, action, s)
			}
		}
		if load.Sleep(ctx, a.o.Slot); ctx.Err() != nil {
			return
		}
	}
}

func (a *arena) actOnSwap(ctx context.Context, action string, s openSwap) {
	key := stranger()
	me := key.PublicKey()
	var instructions []solana.Instruction
	var err error
	add := func(i solana.Instruction, failure error) {
		instructions = append(instructions, i)
		if failure != nil {
			err = failure
		}
	}
	switch action {
	case wraps:
		instructions = s.CreateAccounts(me, s.wallet)[:1] // the account of wrapped SOL
		add(s.Prepare(me))
	case executes:
		instructions = s.CreateAccounts(me, s.wallet)
		add(s.Prepare(me))
		add(a.executeFor(ctx, s, me))
	case refunds:
		add(s.Close(me, s.wallet, a.exists(ctx, s.WSOL)))
	}
	if err == nil {
		_ = a.box.Send(ctx, strangerSwapUnits, true, []solana.PrivateKey{key}, instructions...)
	}
}

// executeFor builds the execution that gives the user the minimum, or more.
func (a *arena) executeFor(ctx context.Context, s openSwap, payer solana.PublicKey) (solana.Instruction, error) {
	state, err := a.chainReader.Client.GetAccountInfoWithOpts(ctx, s.State, processed())
	if err != nil {
		return nil, fmt.Errorf("read a swap's state: %w", err)
	}
	parsed, err := shieldpool.ParseSwapState(state.Value.Data.GetBinary())
	if err != nil {
		return nil, err
	}
	trade := a.market.Swap(market.Trade{User: s.State, WSOL: s.WSOL, Tokens: s.Output, AmountIn: parsed.Lamports, MinOut: s.Terms.MinOutput})
	data, err := trade.Data()
	if err != nil {
		return nil, err
	}
	return s.Execute(payer, market.ProgramID, trade.Accounts(), data)
}

func (a *arena) exists(ctx context.Context, key solana.PublicKey) bool {
	answer, err := a.chainReader.Client.GetAccountInfoWithOpts(ctx, key, processed())
	return err == nil && answer.Value != nil
}

// processed returns the options to read an account at the processed commitment.
func processed() *rpc.GetAccountInfoOpts {
	return &rpc.GetAccountInfoOpts{Encoding: solana.EncodingBase64, Commitment: rpc.CommitmentProcessed}
}

const openSwapsSQL = `SELECT r.public_inputs, r.recipient, r.swap_terms, w.timeout_slot
	FROM swaps w JOIN submissions s ON s.id = w.id JOIN requests r ON r.submission_id = s.parent
	WHERE NOT w.ended AND w.phase NOT IN ('executed', 'refunded') AND w.timeout_slot > 0 ORDER BY s.id`

func (a *arena) openSwaps(ctx context.Context) ([]openSwap, error) {
	return sandbox.Select(ctx, a.box, databaseName, func(row pgx.CollectableRow) (s openSwap, err error) {
		var inputs, recipient, terms []byte
		if err := row.Scan(&inputs, &recipient, &terms, &s.timeout); err != nil {
			return s, err
		}
		parsed, err := shieldpool.ParsePublicInputs(inputs)
		if err != nil {
			return s, err
		}
		s.wallet = solana.PublicKeyFromBytes(recipient)
		decoded := gather.SwapTerms(terms)
		if decoded == nil {
			return s, fmt.Errorf("a swap's terms have %d bytes", len(terms))
		}
		s.Swap, err = a.box.Pool.Swap(parsed.Nullifiers[0], *decoded)
		return s, err
	}, openSwapsSQL)
}
