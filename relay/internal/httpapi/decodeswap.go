package httpapi

import (
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/refusal"
)

const (
	outputMintText   = "the output mint's address in base58"
	recipientATAText = "the address of the recipient's token account in base58"
)

// decodeSwap reads the body of POST /transact_swap: a body of POST /transact
// with a swap's terms.
func decodeSwap(raw []byte) (submission.Request, error) {
	o, err := parseObject(raw)
	if err != nil {
		return submission.Request{}, err
	}
	req, err := o.submission()
	if err != nil {
		return req, err
	}
	terms := new(submission.SwapRequest)
	if terms.OutputMint, err = o.text(field{"output_mint", outputMintText, maxAddressLength, refusal.InvalidSwap}); err != nil {
		return req, err
	}
	if terms.RecipientATA, err = o.text(field{"recipient_ata", recipientATAText, maxAddressLength, refusal.InvalidSwap}); err != nil {
		return req, err
	}
	if terms.MinOutput, err = o.amount("min_output_amount"); err != nil {
		return req, err
	}
	req.Swap = terms
	return req, nil
}
