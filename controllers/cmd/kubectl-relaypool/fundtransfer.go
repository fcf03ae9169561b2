package main

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/system"

	"github.com/relaypool/relaypool/relay/commandline"
	"github.com/relaypool/relaypool/relay/keyfile"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/rpc"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// transferUnits is the compute limit of a transfer: each of its three instructions takes 150 units.
const transferUnits = 600

// sender sends transfers from one account, one at a time.
type sender struct {
	env      *environment
	endpoint *rpc.Client
	key      ed25519.PrivateKey
	price    uint64 // in micro-lamports per compute unit
	timeout  time.Duration
}

// readKey reads the key of the account that pays. Its errors contain no part of the key.
func readKey(path string) (ed25519.PrivateKey, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: --from-key-file: %w", commandline.ErrUsage, err)
	}
	defer func() { _ = f.Close() }() // an error would not matter, because the file is only read
	content, err := io.ReadAll(io.LimitReader(f, keyfile.MaxContent+1))
	defer clear(content)
	if err != nil {
		return nil, fmt.Errorf("%w: --from-key-file: %w", commandline.ErrUsage, err)
	}
	key, err := keyfile.Parse(content)
	if err != nil {
		return nil, fmt.Errorf("%w: --from-key-file: %w", commandline.ErrUsage, err)
	}
	return key, nil
}

// from returns the address of the account that pays.
func (s *sender) from() solana.PublicKey {
	return solana.PublicKeyFromBytes(s.key[ed25519.SeedSize:])
}

func (s *sender) compute() shieldpool.Compute {
	return shieldpool.Compute{Limit: transferUnits, Price: s.price}
}

// checkFunds checks, before anything is sent, that the account can pay for all transfers. It
// returns their sum.
func (s *sender) checkFunds(short []shortfall) (sum uint64, err error) {
	for i := range short {
		if short[i].to == s.from() {
			return 0, fmt.Errorf("%w: --from-key-file: %s is one of the payers that lack lamports", commandline.ErrUsage, short[i].to)
		}
		sum += short[i].missing
	}
	balance, _, err := s.endpoint.Balance(s.env, s.from(), 0)
	if err != nil {
		return 0, fmt.Errorf("read the balance of %s: %w", s.from(), err)
	}
	fees := uint64(len(short)) * (shieldpool.SignatureFee + s.compute().PriorityFee())
	if need := sum + fees; balance < need || balance > need && balance-need < shieldpool.RentExempt {
		return 0, fmt.Errorf("%s holds %s SOL: expected %s SOL for the transfers and fees, and either nothing or %s SOL that remain", s.from(), onchain.SOL(balance), onchain.SOL(need), onchain.SOL(shieldpool.RentExempt))
	}
	return sum, nil
}

// transfer sends lamports and waits until the transaction is confirmed. It prints the signature
// before it sends, so that the transaction can be looked up whatever happens.
func (s *sender) transfer(to solana.PublicKey, lamports uint64) error {
	blockhash, err := s.endpoint.LatestBlockhash(s.env)
	if err != nil {
		return fmt.Errorf("read a blockhash: %w", err)
	}
	raw, signature, err := s.sign(to, lamports, blockhash.Hash)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.env.out, "%s  %s SOL to %s: ", signature, onchain.SOL(lamports), to)
	// A send that is cut off may still land, so an interrupt ends the wait and not the send.
	err = s.endpoint.Send(context.WithoutCancel(s.env), raw, true, blockhash.Slot)
	if err == nil || errors.Is(err, onchain.ErrUnavailable) { // any other error means that nothing was sent
		err = s.confirm(raw, signature, &blockhash)
	}
	if err != nil {
		fmt.Fprintln(s.env.out, "not confirmed")
		return err
	}
	fmt.Fprintln(s.env.out, "confirmed")
	return nil
}

// sign makes the transaction of a transfer.
func (s *sender) sign(to solana.PublicKey, lamports uint64, blockhash solana.Hash) (raw []byte, signature solana.Signature, err error) {
	from, compute := s.from(), s.compute()
	instructions := append(compute.Instructions(), system.NewTransferInstruction(lamports, from, to).Build())
	tx, err := solana.NewTransaction(instructions, blockhash, solana.TransactionPayer(from))
	if err != nil {
		return nil, signature, fmt.Errorf("build the transaction: %w", err)
	}
	private := solana.PrivateKey(s.key)
	signatures, err := tx.Sign(func(of solana.PublicKey) *solana.PrivateKey {
		if of == from {
			return &private
		}
		return nil
	})
	if err != nil {
		return nil, signature, fmt.Errorf("sign the transaction: %w", err)
	}
	if raw, err = tx.MarshalBinary(); err != nil {
		return nil, signature, fmt.Errorf("encode the transaction: %w", err)
	}
	return raw, signatures[0], nil
}

// errUnresolved is returned when a transfer may still land.
var errUnresolved = errors.New("the transfer may still land: look its signature up before you send it again")

// confirm waits until the transaction is confirmed, and sends the same bytes again meanwhile. It
// returns an error without errUnresolved only if the transaction can no longer land.
func (s *sender) confirm(raw []byte, signature solana.Signature, blockhash *onchain.Blockhash) error {
	ctx, cancel := context.WithTimeout(s.env, s.timeout)
	defer cancel()
	for {
		search, err := s.search(ctx, signature)
		if err == nil {
			switch status := search.Statuses[0]; search.Fate(status, blockhash.Slot, blockhash.LastValidBlockHeight, time.Time{}) {
			case onchain.Landed:
				return nil
			case onchain.FailedOnChain:
				return fmt.Errorf("the transaction failed on the chain: %w", status.Err)
			case onchain.Expired:
				return errors.New("the transaction expired, and nothing was sent: run the command again")
			case onchain.Forgotten, onchain.MayLand:
			}
		}
		if pauseErr := s.env.pause(ctx); pauseErr != nil {
			return errors.Join(errUnresolved, err)
		}
		_ = s.endpoint.Send(context.WithoutCancel(ctx), raw, false, 0) // the next search shows the outcome
	}
}

// search looks for a transaction. The finalized height is read first: a transaction that is not
// found afterwards, and whose blockhash had expired at that height, can never land.
func (s *sender) search(ctx context.Context, signature solana.Signature) (*onchain.SearchResult, error) {
	finalized, err := s.endpoint.Newest(ctx, onchain.Finalized)
	if err != nil {
		return nil, fmt.Errorf("read the finalized height: %w", err)
	}
	first, err := s.endpoint.FirstAvailable(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the endpoint's history: %w", err)
	}
	statuses, slot, err := s.endpoint.Statuses(ctx, []solana.Signature{signature}, true)
	if err != nil {
		return nil, fmt.Errorf("look for the transaction: %w", err)
	}
	return &onchain.SearchResult{
		Statuses: statuses, Slot: slot, FinalizedSlot: finalized.Slot, FinalizedHeight: finalized.Height, FirstAvailable: first,
	}, nil
}
