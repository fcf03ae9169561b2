package tour

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/consensys/gnark-crypto/ecc/bn254/fr"
	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/dev/terminal"
	"github.com/relaypool/relaypool/hack/wallet"
	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/merkle"
	"github.com/relaypool/relaypool/relay/openapi"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// submission is a proven transaction.
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

// prove completes the spend and proves it, before the reader's eyes.
func (t *tour) prove(ctx context.Context, spend wallet.Spend) (*submission, error) {
	spend.Mint, spend.At = t.mint, t.Now()
	witness, err := spend.Witness(t.Random)
	if err != nil {
		return nil, err
	}
	done := t.Print.Busy("making a Groth16 proof over %s constraints", terminal.Grouped(uint64(t.Prover.Constraints))) //nolint:gosec // a count
	defer done()
	s := &submission{public: witness.PublicInputs}
	proof, public, took, err := t.Prover.Prove(ctx, witness)
	if err != nil {
		return nil, err
	}
	if !slices.Equal(public[:], s.public.Bytes()) {
		return nil, errors.New("the prover's public inputs are not those of the transaction")
	}
	s.proof = proof
	done()
	t.Print.Fact("proof", "%d bytes, made in %s", len(proof), terminal.Seconds(took))
	return s, nil
}

// pay is a spend of the wallet's note for a recipient outside the pool: what is
// left stays in a new note.
func (t *tour) pay(ctx context.Context, note wallet.Note, leaves []fr.Element, gross int64, recipient solana.PublicKey) (*submission, wallet.Note, error) {
	change, err := wallet.NewNote(t.Random, note.Amount-uint64(gross), t.mint) //nolint:gosec // the tour's amounts are above zero
	if err != nil {
		return nil, change, err
	}
	s, err := t.prove(ctx, wallet.Spend{
		Inputs: []wallet.Note{note}, Outputs: []wallet.Note{change}, PublicAmount: -gross,
		ExtDataHash: wallet.ExtDataHash(recipient), Leaves: leaves,
	})
	if err != nil {
		return nil, change, err
	}
	s.recipient = recipient
	return s, change, nil
}

// transact posts a submission that must be confirmed within the relay's wait.
func (t *tour) transact(ctx context.Context, s *submission) (*openapi.SubmissionResult, error) {
	began := t.Now()
	defer t.Print.Busy("POST %s until the chain confirms", contract.TransactPath)()
	answer, err := t.relay.TransactWithResponse(ctx, nil, s.body())
	if err != nil {
		return nil, fmt.Errorf("POST %s: %w", contract.TransactPath, err)
	}
	if answer.JSON200 == nil {
		return nil, unexpected("POST "+contract.TransactPath, "200", answer.HTTPResponse, answer.Body)
	}
	t.Print.Fact("POST "+contract.TransactPath, "200 in %s, request %s", terminal.Seconds(t.Now().Sub(began)), answer.JSON200.RequestID)
	return &answer.JSON200.Data, nil
}

// refused posts a submission that must be refused, and prints the refusal.
func (t *tour) refused(ctx context.Context, s *submission, status int, codes ...openapi.ErrorCode) (*openapi.Error, error) {
	answer, err := t.relay.TransactWithResponse(ctx, nil, s.body())
	if err != nil {
		return nil, fmt.Errorf("POST %s: %w", contract.TransactPath, err)
	}
	refusal := answer.JSON400
	if refusal == nil {
		refusal = answer.JSON409
	}
	if answer.StatusCode() != status || refusal == nil || !slices.Contains(codes, refusal.Code) {
		return nil, unexpected("POST "+contract.TransactPath, fmt.Sprintf("%d with one of %v", status, codes), answer.HTTPResponse, answer.Body)
	}
	return refusal, nil
}

func (t *tour) printRefusal(status int, r *openapi.Error) {
	t.Print.Fact("POST "+contract.TransactPath, "%d %s", status, r.Code)
	t.Print.Fact("", "%s", r.Message)
}

func unexpected(what, want string, got *http.Response, body []byte) error {
	return fmt.Errorf("%s: expected %s, received %s: %s", what, want, got.Status, body)
}

// refresh reads the commitments that the client does not have yet, until there
// are as many as want, and holds their root against the relay's and the chain's.
func (t *tour) refresh(ctx context.Context, want int) (*openapi.MerkleRoot, error) {
	defer t.Print.Busy("GET %s until there are %d", contract.CommitmentsPath, want)()
	if err := poll(ctx, fmt.Sprintf("GET %s lists %d leaves", contract.CommitmentsPath, want), func(ctx context.Context) (bool, error) {
		from := int64(len(t.leaves))
		answer, err := t.relay.ListCommitmentsWithResponse(ctx, &openapi.ListCommitmentsParams{FromIndex: &from})
		if err != nil {
			return false, fmt.Errorf("GET %s: %w", contract.CommitmentsPath, err)
		}
		if answer.JSON200 == nil {
			return false, unexpected("GET "+contract.CommitmentsPath, "200", answer.HTTPResponse, answer.Body)
		}
		return len(t.leaves)+answer.JSON200.Count >= want, t.take(answer.JSON200)
	}); err != nil {
		return nil, err
	}
	if err := equal("number of commitments", want, len(t.leaves)); err != nil {
		return nil, err
	}
	return t.compareRoots(ctx)
}

// take adds a page of the list, which must go on where the last one ended.
func (t *tour) take(page *openapi.CommitmentList) error {
	if err := equal("count of commitments beside the list", len(page.Commitments), page.Count); err != nil {
		return err
	}
	for _, c := range page.Commitments {
		if err := equal("index of a commitment", int64(len(t.leaves)), c.Index); err != nil {
			return err
		}
		b, err := hex.DecodeString(c.Commitment)
		if err != nil || len(b) != 32 {
			return fmt.Errorf("commitment %d: expected 64 hexadecimal digits, received %d characters", c.Index, len(c.Commitment))
		}
		leaf, err := merkle.FromBytes([32]byte(b))
		if err != nil {
			return fmt.Errorf("commitment %d: %w", c.Index, err)
		}
		t.leaves = append(t.leaves, leaf)
	}
	return nil
}

// compareRoots computes the root of the client's own leaves.
func (t *tour) compareRoots(ctx context.Context) (*openapi.MerkleRoot, error) {
	tree := merkle.NewTree()
	for i := range t.leaves {
		if err := tree.Append(&t.leaves[i]); err != nil {
			return nil, err
		}
	}
	own := tree.Root()
	answer, err := t.merkleRoot(ctx)
	if err != nil {
		return nil, err
	}
	onChain, err := t.chain.tree(ctx, t.pool)
	if err != nil {
		return nil, err
	}
	root := merkle.Bytes(&own)
	return answer, errors.Join(
		equal("root on the chain beside the one of the commitments", hex.EncodeToString(root[:]), hex.EncodeToString(onChain.Root[:])),
		equal("root of GET "+contract.MerkleRootPath+" beside the one of the commitments", hex.EncodeToString(root[:]), answer.Root),
		equal("next_index of GET "+contract.MerkleRootPath, int64(len(t.leaves)), answer.NextIndex))
}

func (t *tour) merkleRoot(ctx context.Context) (*openapi.MerkleRoot, error) {
	answer, err := t.relay.GetMerkleRootWithResponse(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("GET %s: %w", contract.MerkleRootPath, err)
	}
	if answer.JSON200 == nil {
		return nil, unexpected("GET "+contract.MerkleRootPath, "200", answer.HTTPResponse, answer.Body)
	}
	return answer.JSON200, nil
}

// rpcCalls is the number of RPC calls that the relay has made since its start,
// from its own metrics.
func (t *tour) rpcCalls(ctx context.Context) (calls uint64, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, t.OperationsURL+contract.MetricsPath, http.NoBody)
	if err != nil {
		return 0, err
	}
	answer, err := t.HTTP.Do(request)
	if err != nil {
		return 0, fmt.Errorf("GET %s: %w", contract.MetricsPath, err)
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if !strings.HasPrefix(lines.Text(), contract.MetricRPCCalls.Name+"{") {
			continue
		}
		text := lines.Text()[strings.LastIndexByte(lines.Text(), ' ')+1:]
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return 0, fmt.Errorf("read %s: %w", contract.MetricRPCCalls.Name, err)
		}
		calls += uint64(n)
	}
	if calls == 0 && lines.Err() == nil {
		return 0, fmt.Errorf("GET %s has no sample of %s above zero, expected the calls that the relay has made", contract.MetricsPath, contract.MetricRPCCalls.Name)
	}
	return calls, lines.Err()
}
