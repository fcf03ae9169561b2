package admission

import (
	"context"
	"errors"
	"sync"

	"github.com/relaypool/relaypool/relay/batch"
	"github.com/relaypool/relaypool/relay/groth16"
	"github.com/relaypool/relaypool/relay/refusal"
)

const (
	// maxBatch bounds the proofs of a batch. Larger batches save little, and keep a core from other
	// work for longer.
	maxBatch = 64
	// minShare is the number of waiting proofs that are not divided among workers, because smaller
	// batches take much longer for each proof.
	minShare = 8
)

// proofQueue verifies the proofs of concurrent requests in batches, which takes a third of the time
// of single checks. A request that finds one of the queue's cores free is verified at once. Otherwise it
// waits until one becomes free, and is verified with others that wait.
type proofQueue struct {
	*batch.Queue[groth16.Claim, groth16.Verdict]
	verifyBatch func([]groth16.Claim, groth16.ProofAEncoding) []groth16.Verdict

	mu sync.Mutex
	// limit bounds the next batch. A forged proof makes its batch slow, so a failed batch halves the
	// limit, down to single checks, and every four valid proofs raise it by one.
	limit float64
	// plain is the number of recent valid proofs with a plain A, minus those with a negated A.
	plain int
}

// proofCores is how many of the cores verify proofs. One is left to what was accepted before, and to
// reads. When all of two cores verified, batches were smaller, and 7 to 20 percent fewer submissions were
// accepted a second.
func proofCores(cores int) int { return max(cores-1, 1) }

// newProofQueue makes a queue that uses so many cores.
func newProofQueue(cores int, verifyBatch func([]groth16.Claim, groth16.ProofAEncoding) []groth16.Verdict) *proofQueue {
	q := &proofQueue{verifyBatch: verifyBatch, limit: maxBatch}
	q.Queue = &batch.Queue[groth16.Claim, groth16.Verdict]{Runners: cores, Run: q.run, Share: func(waiting int) int {
		q.mu.Lock()
		defer q.mu.Unlock()
		return min(max((waiting+cores-1)/cores, minShare), int(q.limit))
	}}
	return q
}

// verify returns what groth16.Key.Verify returns for the claim. Only when the context ends while the
// proof waits, err is not nil.
func (q *proofQueue) verify(ctx context.Context, claim groth16.Claim) (groth16.Verdict, error) {
	verdict, err := q.Do(ctx, claim)
	if err != nil && !errors.Is(err, context.Canceled) {
		err = refusal.New(refusal.RateLimited, "the relay receives more requests than it can verify, so nothing was decided: send the same request again later")
	}
	return verdict, err
}

func (q *proofQueue) run(_ context.Context, claims []groth16.Claim) ([]groth16.Verdict, error) {
	verdicts := q.verifyBatch(claims, q.expected())
	q.learn(verdicts)
	return verdicts, nil
}

// expected is the encoding that most valid proofs had.
func (q *proofQueue) expected() groth16.ProofAEncoding {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.plain < 0 {
		return groth16.Negated
	}
	return groth16.Plain
}

// learn sets the limit and the expected encoding for the next batches.
func (q *proofQueue) learn(verdicts []groth16.Verdict) {
	var plain, negated int
	for _, v := range verdicts {
		switch v.Encoding {
		case groth16.Plain:
			plain++
		case groth16.Negated:
			negated++
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.plain = min(max(q.plain+plain-negated, -maxBatch), maxBatch)
	if max(plain, negated) == len(verdicts) { // all valid, with one encoding
		q.limit = min(q.limit+float64(len(verdicts))/4, maxBatch)
	} else {
		q.limit = max(q.limit/2, 1)
	}
}
