package arena

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/hack/drill/account"
	"github.com/relaypool/relaypool/relay/openapi"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// openVault remembers what the market holds before anybody swaps.
func (a *arena) openVault(ctx context.Context) error {
	at, err := vault()
	if err != nil {
		return err
	}
	a.vault, err = a.eyes.balance(ctx, at)
	return err
}

// swapStatuses asks for every swap of the database, those included whose clients
// never learned that they were accepted.
func (a *arena) swapStatuses(ctx context.Context) map[uuid.UUID]account.SwapStatus {
	out := make(map[uuid.UUID]account.SwapStatus)
	ids, err := a.database.swaps(ctx)
	if err != nil {
		return out // every swap is missing then, which the checks tell
	}
	for i, id := range ids {
		out[id] = a.swapStatus(ctx, a.relays[i%len(a.relays)], id)
	}
	return out
}

func (a *arena) swapStatus(ctx context.Context, r *relay, id uuid.UUID) account.SwapStatus {
	client, err := openapi.NewClientWithResponses(r.url, openapi.WithHTTPClient(a.http))
	if err != nil {
		return account.SwapStatus{Fault: err.Error()}
	}
	answer, err := client.GetStatusWithResponse(ctx, id)
	switch {
	case err != nil:
		return account.SwapStatus{Fault: fmt.Sprintf("relay %d did not answer", r.index+1)}
	case answer.JSON200 == nil:
		return account.SwapStatus{Fault: fmt.Sprintf("relay %d answered %s", r.index+1, http.StatusText(answer.StatusCode()))}
	}
	said := &answer.JSON200.Data
	return account.SwapStatus{
		Status: string(said.Status), Phase: string(deref(said.SwapPhase)), Code: deref(said.ErrorCode), Finalized: said.Finalized,
		Signature: deref(said.SolanaSignature), Execution: deref(said.SwapSignature), Refund: deref(said.RefundSignature),
	}
}

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// searchLeft looks for what swaps may have left on the chain: every state that a
// transaction has made, and every account of wrapped SOL that one has named.
func (a *arena) searchLeft(ctx context.Context, e *account.Evidence) error {
	at, err := vault()
	if err != nil {
		return err
	}
	if e.Vault.Closing, err = a.eyes.balance(ctx, at); err != nil {
		return err
	}
	e.Vault.Opening = a.vault
	places := maps.Clone(a.eyes.wraps)
	delete(places, at)
	for i := range e.Transactions {
		for k := range e.Transactions[i].Calls {
			if call := &e.Transactions[i].Calls[k]; call.Swap != nil {
				places[call.Recipient] = true
			}
		}
	}
	keys := slices.SortedFunc(maps.Keys(places), func(a, b solana.PublicKey) int { return slices.Compare(a[:], b[:]) })
	e.Searched = len(keys)
	for part := range slices.Chunk(keys, mostAccounts) {
		answer, err := a.eyes.client.GetMultipleAccountsWithOpts(ctx, part, &rpc.GetMultipleAccountsOpts{Encoding: solana.EncodingBase64, Commitment: rpc.CommitmentFinalized})
		if err != nil {
			return fmt.Errorf("look for what swaps left: %w", err)
		}
		for i, found := range answer.Value {
			if left := a.left(part[i], found); left != nil {
				e.Left = append(e.Left, *left)
			}
		}
	}
	return nil
}

// mostAccounts that an RPC reads at once.
const mostAccounts = 100

// left judges an account; nil when nothing of a swap is in it. That of an empty
// token account stays when its swap was refunded: nobody can close it.
func (a *arena) left(key solana.PublicKey, found *rpc.Account) *account.Left {
	switch {
	case found == nil:
		return nil
	case found.Owner == a.pool.Profile.ProgramID:
		return &account.Left{Key: key, What: "swap state", Amount: found.Lamports}
	case found.Owner != solana.TokenProgramID:
		return nil // a stranger's lamports
	}
	token, err := shieldpool.ParseTokenAccount(found.Data.GetBinary())
	if err != nil || token.Amount == 0 {
		return nil
	}
	return &account.Left{Key: key, What: "wrapped SOL", Amount: token.Amount}
}
