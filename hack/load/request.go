package load

import (
	"context"
	"encoding/json"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/wallet/trade"
	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/openapi"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// NewRequest makes a request for a spend of fresh notes, as the clients of Run do, but never
// for a swap. It is for callers with a schedule of their own, such as a benchmark. The same
// options, number and root give the same request.
func (o *Options) NewRequest(number int, root [32]byte) Request {
	plain := *o
	plain.Swaps = 0
	return o.prove(newSpend(&plain, number), root)
}

// NewSwapRequest is NewRequest for a swap. The minimum output follows the price of
// Options.Market. A zero wallet means a new wallet.
func (o *Options) NewSwapRequest(ctx context.Context, number int, root [32]byte, wallet solana.PublicKey) (Request, error) {
	swaps := *o
	swaps.Swaps = 1
	s := newSpend(&swaps, number)
	if !wallet.IsZero() {
		s.recipient = wallet
	}
	quoted, err := o.Market.Quote(ctx, o.Market.Mint, s.swap.Lamports)
	if err != nil {
		return Request{}, err
	}
	if err := s.price(o.Market, quoted); err != nil {
		return Request{}, err
	}
	return o.prove(s, root), nil
}

func (o *Options) prove(s *spend, root [32]byte) Request {
	q := s.request()
	q.Inputs.Root = root
	q.Proofs = [][shieldpool.ProofLength]byte{o.Simulator.Prove(&q.Inputs, 0)}
	return q
}

// Path returns the route that accepts the request and waits for its outcome.
func (q *Request) Path() string {
	if q.Swap != nil {
		return contract.TransactSwapPath
	}
	return contract.TransactPath
}

// Body returns the JSON for Path with one of the request's proofs.
func (q *Request) Body(proof int) ([]byte, error) {
	if q.Swap != nil {
		return q.swapBody(proof)
	}
	request := openapi.TransactRequest{ProofBytes: q.Proofs[proof][:], PublicInputs: q.Inputs.Bytes()}
	if !q.Recipient.IsZero() {
		text := q.Recipient.String()
		request.Recipient = &text
	}
	if len(q.Notes) > 0 {
		request.EncryptedNotes = &q.Notes
	}
	return json.Marshal(request)
}

func (q *Request) swapBody(proof int) ([]byte, error) {
	request, err := trade.Request(q.Proofs[proof][:], q.Inputs.Bytes(), q.Recipient, q.Swap.Terms, q.Notes)
	if err != nil {
		return nil, err
	}
	if q.Swap.Digits {
		if err := request.MinOutputAmount.FromTransactSwapRequestMinOutputAmount0(q.Swap.Terms.MinOutput); err != nil {
			return nil, err
		}
	}
	return json.Marshal(request)
}
