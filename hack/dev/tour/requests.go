package tour

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/relaypool/relaypool/hack/dev/terminal"
	"github.com/relaypool/relaypool/hack/wallet"
	"github.com/relaypool/relaypool/hack/wallet/trade"
	"github.com/relaypool/relaypool/relay/contract"
)

// The files of the requests, which the README's examples send.
const (
	transactRequest = "transact.json"
	withdrawRequest = "withdraw.json"
	swapRequest     = "swap.json"
	registerRequest = "viewing-key.json"
)

// requestMinimumBPS is the minimum of the user's swap in basis points of the quote. The
// market may move before the user sends it.
const requestMinimumBPS = 9_000

// leaveRequests proves two withdrawals and a swap, one for each remaining note, and writes
// their requests to files. The user can send them with curl, which cannot make proofs.
func (t *tour) leaveRequests(ctx context.Context) {
	withContext("make the folder of requests", os.MkdirAll(t.Requests, 0o750))
	for _, request := range []struct {
		name string
		note wallet.Note
	}{{transactRequest, t.note}, {withdrawRequest, t.transferred}} {
		recipient := t.newRecipient()
		s, _ := t.pay(ctx, request.note, t.leaves, int64(request.note.Amount), recipient) //nolint:gosec // the tour's amounts are far below 2^63
		t.writeRequest(request.name, s.body())
		t.Print.Fact(request.name, "a withdrawal of %s to %s", terminal.Lamports(request.note.Amount), recipient)
	}
	gross := int64(t.later.Amount) //nolint:gosec // the tour's amounts are far below 2^63
	o := t.order(ctx, t.later, gross, func(quoted uint64) uint64 { return trade.Minimum(quoted, requestMinimumBPS) })
	t.Print.Fact(swapRequest, "a swap of %s for %s, for POST %s", terminal.Lamports(o.net), o.recipient, contract.TransactSwapPath)
	t.writeRequest(swapRequest, o.body())
	t.Print.Fact(registerRequest, "the registration of step 4, for POST %s", contract.ViewingKeyRegisterPath)
	t.writeRequest(registerRequest, t.registration)
}

func (t *tour) writeRequest(name string, body any) {
	content, err := json.MarshalIndent(body, "", "  ")
	withContext("write a request", err)
	withContext("write a request", os.WriteFile(filepath.Join(t.Requests, name), append(content, '\n'), 0o600))
}
