package trade

import (
	"context"
	"errors"
	"fmt"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

// Tokens returns the balance of a token account, in its mint's smallest unit, at a
// commitment level. For an account that does not exist, the balance is 0 and exists is
// false. It returns an error if the account is not a token account of SPL Token, or if the
// node did not answer.
func Tokens(ctx context.Context, chain *rpc.Client, account solana.PublicKey, commitment rpc.CommitmentType) (amount uint64, exists bool, err error) {
	found, err := chain.GetAccountInfoWithOpts(ctx, account, &rpc.GetAccountInfoOpts{Encoding: solana.EncodingBase64, Commitment: commitment})
	switch {
	case errors.Is(err, rpc.ErrNotFound):
		return 0, false, nil
	case err != nil:
		return 0, false, fmt.Errorf("read a token account: %w", withoutURL(err))
	case !found.Value.Owner.Equals(solana.TokenProgramID):
		return 0, false, errors.New("read a token account: another program than SPL Token owns it")
	}
	parsed, err := shieldpool.ParseTokenAccount(found.Value.Data.GetBinary())
	if err != nil {
		return 0, false, fmt.Errorf("read a token account: %w", err)
	}
	return parsed.Amount, true, nil
}
