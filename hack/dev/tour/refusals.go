package tour

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/consensys/gnark-crypto/ecc/bn254/fr"

	"github.com/relaypool/relaypool/hack/dev/terminal"
	"github.com/relaypool/relaypool/hack/wallet"
	"github.com/relaypool/relaypool/relay/openapi"
)

// spendTwice sends a valid proof that spends the spent note again, to another
// recipient and against the current root.
func (t *tour) spendTwice(ctx context.Context) {
	s, _ := t.pay(ctx, t.spent, t.leaves, payout, t.newRecipient())
	r := t.refused(ctx, s, http.StatusConflict, openapi.ErrorCodeNullifierSpent, openapi.ErrorCodeNullifierReserved)
	t.printRefusal(http.StatusConflict, r)
	if r.NullifierIndex == nil {
		check(errors.New("nullifier_index: expected 0, received none"))
	}
	check(equal("nullifier_index", 0, *r.NullifierIndex))
}

// staleRoot sends a valid proof for a tree that the client made up. The chain never had
// this tree's root.
func (t *tour) staleRoot(ctx context.Context) {
	note := must(wallet.NewNote(t.Random, depositAmount, t.mint))
	s, _ := t.pay(ctx, note, []fr.Element{note.Commitment()}, payout, t.newRecipient())
	t.Print.Fact("against", "the root of a tree that the client made up")
	current := t.chain.tree(ctx, t.pool)
	r := t.refused(ctx, s, http.StatusBadRequest, openapi.ErrorCodeRootNotFound)
	t.printRefusal(http.StatusBadRequest, r)
	if r.CurrentRoot == nil {
		check(errors.New("current_root: expected the chain's root, received none"))
	}
	t.Print.Fact("current_root", "%s", *r.CurrentRoot)
	check(
		equal("current_root", hex.EncodeToString(current.Root[:]), *r.CurrentRoot),
		equal("whether the message contains RootNotFound", true, strings.Contains(r.Message, "RootNotFound")))
}

// forge claims one lamport more than was proven. The relay must refuse this without an
// RPC call. The relay also polls in the background, so forge repeats the request until
// no RPC call is made meanwhile.
func (t *tour) forge(ctx context.Context) {
	s, _ := t.pay(ctx, t.note, t.leaves, laterPayout, t.newRecipient())
	s.public.PublicAmount--
	const maxTries = 50
	for range maxTries {
		before := t.rpcCalls(ctx)
		began := t.Now()
		r := t.refused(ctx, s, http.StatusBadRequest, openapi.ErrorCodeProofInvalid)
		took := t.Now().Sub(began)
		if after := t.rpcCalls(ctx); before == after {
			t.printRefusal(http.StatusBadRequest, r)
			t.Print.Fact("RPC calls", "%s before, %s after; refused in %s", terminal.Grouped(before), terminal.Grouped(after), terminal.Seconds(took))
			return
		}
	}
	check(fmt.Errorf("RPC calls while a forged proof is refused: expected none in at least one of %d exchanges, received some in each", maxTries))
}
