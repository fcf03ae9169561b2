package tour

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/consensys/gnark-crypto/ecc/bn254/fr"
	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/dev/terminal"
	"github.com/relaypool/relaypool/hack/throughput/gauge"
	"github.com/relaypool/relaypool/hack/wallet"
	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/merkle"
	"github.com/relaypool/relaypool/relay/openapi"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// The names of the requests in errors and facts.
const (
	postTransact = "POST " + contract.TransactPath
	postSwap     = "POST " + contract.TransactSwapPath
	getRoot      = "GET " + contract.MerkleRootPath
	getLeaves    = "GET " + contract.CommitmentsPath
	getBacklog   = "GET " + contract.BacklogPath
)

type submission struct {
	proof     [shieldpool.ProofLength]byte
	public    shieldpool.PublicInputs
	recipient solana.PublicKey // zero for a transfer and a deposit
	notes     [][]byte
}

func (s *submission) body() openapi.TransactRequest {
	body := openapi.TransactRequest{ProofBytes: s.proof[:], PublicInputs: s.public.Bytes()}
	if !s.recipient.IsZero() {
		recipient := s.recipient.String()
		body.Recipient = &recipient
	}
	if s.notes != nil {
		body.EncryptedNotes = &s.notes
	}
	return body
}

// prove completes and proves the spend, and prints the progress.
func (t *tour) prove(ctx context.Context, spend wallet.Spend) *submission {
	spend.Mint, spend.At = t.mint, t.Now()
	witness := must(spend.Witness(t.Random))
	done := t.Print.Busy("making a Groth16 proof over %s constraints", terminal.Grouped(uint64(t.Prover.Constraints))) //nolint:gosec // a count
	defer done()
	proof, public, took, err := t.Prover.Prove(ctx, witness)
	check(err)
	if !slices.Equal(public[:], witness.PublicInputs.Bytes()) {
		check(errors.New("the prover returned other public inputs than the transaction has"))
	}
	done()
	t.Print.Fact("proof", "%d bytes, made in %s", len(proof), terminal.Seconds(took))
	return &submission{proof: proof, public: witness.PublicInputs}
}

// pay proves a payment of gross from a note to a recipient outside the pool, and returns the
// new note with the change.
func (t *tour) pay(ctx context.Context, note wallet.Note, leaves []fr.Element, gross int64, recipient solana.PublicKey) (*submission, wallet.Note) {
	change := must(wallet.NewNote(t.Random, note.Amount-uint64(gross), t.mint)) //nolint:gosec // the tour's amounts are above zero
	s := t.prove(ctx, wallet.Spend{
		Inputs: []wallet.Note{note}, Outputs: []wallet.Note{change}, PublicAmount: -gross,
		ExtDataHash: wallet.ExtDataHash(recipient), Leaves: leaves,
	})
	s.recipient = recipient
	return s, change
}

// transact posts a submission, which must be confirmed before the relay answers.
func (t *tour) transact(ctx context.Context, s *submission) *openapi.SubmissionResult {
	began := t.Now()
	defer t.Print.Busy("%s until the chain confirms", postTransact)()
	answer, err := t.relay.TransactWithResponse(ctx, nil, s.body())
	withContext(postTransact, err)
	checkAnswer(answer.JSON200 != nil, postTransact, "200", answer.HTTPResponse, answer.Body)
	t.Print.Fact(postTransact, "200 in %s, request %s", terminal.Seconds(t.Now().Sub(began)), answer.JSON200.RequestID)
	return &answer.JSON200.Data
}

// refused posts a submission, which the relay must refuse with the status and one of the codes.
func (t *tour) refused(ctx context.Context, s *submission, status int, codes ...openapi.ErrorCode) *openapi.Error {
	answer, err := t.relay.TransactWithResponse(ctx, nil, s.body())
	withContext(postTransact, err)
	refusal := answer.JSON400
	if refusal == nil {
		refusal = answer.JSON409
	}
	checkAnswer(answer.StatusCode() == status && refusal != nil && slices.Contains(codes, refusal.Code),
		postTransact, fmt.Sprintf("%d with one of %v", status, codes), answer.HTTPResponse, answer.Body)
	return refusal
}

func (t *tour) printRefusal(status int, r *openapi.Error) {
	t.Print.Fact(postTransact, "%d %s", status, r.Code)
	t.Print.Fact("", "%s", r.Message)
}

// refresh reads new commitments until it has want commitments, and compares their root
// with the roots of the relay and the chain.
func (t *tour) refresh(ctx context.Context, want int) *openapi.MerkleRoot {
	defer t.Print.Busy("%s until there are %d", getLeaves, want)()
	poll(ctx, fmt.Sprintf("%s lists %d leaves", getLeaves, want), func(ctx context.Context) bool {
		from := int64(len(t.leaves))
		answer, err := t.relay.ListCommitmentsWithResponse(ctx, &openapi.ListCommitmentsParams{FromIndex: &from})
		withContext(getLeaves, err)
		checkAnswer(answer.JSON200 != nil, getLeaves, "200", answer.HTTPResponse, answer.Body)
		t.addLeaves(answer.JSON200)
		return len(t.leaves) >= want
	})
	check(equal("number of commitments", want, len(t.leaves)))
	return t.compareRoots(ctx)
}

// addLeaves adds a page of the list, whose indices must continue the last page's.
func (t *tour) addLeaves(page *openapi.CommitmentList) {
	check(equal("count of the listed commitments", len(page.Commitments), page.Count))
	for _, c := range page.Commitments {
		check(equal("index of a commitment", int64(len(t.leaves)), c.Index))
		b, err := hex.DecodeString(c.Commitment)
		if err != nil || len(b) != 32 {
			check(fmt.Errorf("commitment %d: expected 64 hexadecimal digits, received %d characters", c.Index, len(c.Commitment)))
		}
		leaf, err := merkle.FromBytes([32]byte(b))
		withContext(fmt.Sprint("commitment ", c.Index), err)
		t.leaves = append(t.leaves, leaf)
	}
}

// compareRoots compares the root of the client's leaves with the chain's and the relay's.
func (t *tour) compareRoots(ctx context.Context) *openapi.MerkleRoot {
	tree := merkle.NewTree()
	for i := range t.leaves {
		check(tree.Append(&t.leaves[i]))
	}
	own := tree.Root()
	root := merkle.Bytes(&own)
	answer := t.merkleRoot(ctx)
	onChain := t.chain.tree(ctx, t.pool)
	check(
		equal("root on the chain, compared with the commitments' root", hex.EncodeToString(root[:]), hex.EncodeToString(onChain.Root[:])),
		equal("root of "+getRoot+", compared with the commitments' root", hex.EncodeToString(root[:]), answer.Root),
		equal("next_index of "+getRoot, int64(len(t.leaves)), answer.NextIndex))
	return answer
}

func (t *tour) merkleRoot(ctx context.Context) *openapi.MerkleRoot {
	answer, err := t.relay.GetMerkleRootWithResponse(ctx, nil)
	withContext(getRoot, err)
	checkAnswer(answer.JSON200 != nil, getRoot, "200", answer.HTTPResponse, answer.Body)
	return answer.JSON200
}

// pending returns how many submissions the relay has not completed yet.
func (t *tour) pending(ctx context.Context) int64 {
	answer, err := t.relay.GetBacklogWithResponse(ctx)
	withContext(getBacklog, err)
	checkAnswer(answer.JSON200 != nil, getBacklog, "200", answer.HTTPResponse, answer.Body)
	return answer.JSON200.PendingCount
}

// rpcCalls returns the number of RPC calls since the relay's start, from its metrics.
func (t *tour) rpcCalls(ctx context.Context) (calls uint64) {
	request := must(http.NewRequestWithContext(ctx, http.MethodGet, t.OperationsURL+contract.MetricsPath, http.NoBody))
	answer, err := t.HTTP.Do(request)
	withContext("GET "+contract.MetricsPath, err)
	page, err := io.ReadAll(answer.Body)
	check(err, answer.Body.Close())
	calls = uint64(gauge.ReadMetrics([][]byte{page}).Sum(contract.MetricRPCCalls.Name))
	if calls == 0 {
		check(fmt.Errorf("GET %s has no sample of %s above zero, expected the calls that the relay has made", contract.MetricsPath, contract.MetricRPCCalls.Name))
	}
	return calls
}
