package load

import (
	"encoding/json"

	"github.com/relaypool/relaypool/relay/openapi"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// Draw makes a request for a spend of fresh notes, as Run's clients make theirs:
// for who drives the relay by a schedule of his own, such as a benchmark. The
// same options, number and root give the same request.
func (o *Options) Draw(number int, root [32]byte) Request {
	s := newSpend(o, number)
	q := Request{Inputs: s.inputs, Recipient: s.recipient, Notes: s.notes}
	q.Inputs.Root = root
	q.Proofs = [][shieldpool.ProofLength]byte{o.Simulator.Prove(&q.Inputs, 0)}
	return q
}

// Body is the JSON of POST /transact with one of the request's proofs.
func (q *Request) Body(proof int) ([]byte, error) {
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
