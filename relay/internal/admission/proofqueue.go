package admission

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"

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
// of single checks. A request that finds a free core is verified at once. Otherwise it waits until a
// core becomes free, and is verified with others that wait.
type proofQueue struct {
	verifyBatch func([]groth16.Claim, groth16.ProofAEncoding) []groth16.Verdict
	workers     int // one for each core

	mu      sync.Mutex
	waiting []*waitingProof // in order of arrival
	working int             // workers that run
	// limit bounds the next batch. A forged proof makes its batch slow, so a failed batch halves the
	// limit, down to single checks, and every four valid proofs raise it by one.
	limit float64
	// plain is the number of recent valid proofs with a plain A, minus those with a negated A.
	plain int
}

// waitingProof is a proof whose request waits for the verdict.
type waitingProof struct {
	ctx   context.Context
	claim groth16.Claim
	// verdict receives the verdict. It is closed without one after a panic.
	verdict chan groth16.Verdict
}

func newProofQueue(workers int, verifyBatch func([]groth16.Claim, groth16.ProofAEncoding) []groth16.Verdict) *proofQueue {
	return &proofQueue{verifyBatch: verifyBatch, workers: workers, limit: maxBatch}
}

// verify returns what groth16.Key.Verify returns for the claim. Only when the context ends while the
// proof waits, err is not nil.
func (q *proofQueue) verify(ctx context.Context, claim groth16.Claim) (verdict groth16.Verdict, err error) {
	p := &waitingProof{ctx: ctx, claim: claim, verdict: make(chan groth16.Verdict, 1)}
	q.add(p)
	select {
	case verdict, ok := <-p.verdict:
		if !ok { // this request panics if its proof was the cause, and no other
			verdict = q.verifyBatch([]groth16.Claim{claim}, groth16.Plain)[0]
		}
		return verdict, nil
	case <-ctx.Done():
		if err := ctx.Err(); errors.Is(err, context.Canceled) {
			return verdict, err
		}
		return verdict, refusal.New(refusal.RateLimited, "the relay receives more requests than it can verify, so nothing was decided: send the same request again later")
	}
}

func (q *proofQueue) add(p *waitingProof) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, p)
	if q.working < q.workers {
		q.working++
		go q.work()
	}
}

// work verifies batches until no proof waits.
func (q *proofQueue) work() {
	for {
		// Requests that are ready to run join the batch. Without this, a worker that has just given
		// its verdicts finds the queue empty, and the next batch is the first of the new requests alone.
		runtime.Gosched()
		batch := q.next()
		if batch == nil {
			return
		}
		q.decide(batch)
	}
}

// next removes a worker's share from the waiting proofs. It returns nil, and counts the worker as
// ended, when none waits. Proofs whose requests have ended are not verified.
func (q *proofQueue) next() []*waitingProof {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = slices.DeleteFunc(q.waiting, func(p *waitingProof) bool { return p.ctx.Err() != nil })
	if len(q.waiting) == 0 {
		q.working--
		return nil
	}
	share := (len(q.waiting) + q.workers - 1) / q.workers
	n := min(max(share, minShare), len(q.waiting), int(q.limit))
	batch := slices.Clone(q.waiting[:n])
	q.waiting = slices.Delete(q.waiting, 0, n)
	return batch
}

// decide verifies a batch. After a panic each request verifies its proof itself, so that only the
// request that causes the panic fails.
func (q *proofQueue) decide(batch []*waitingProof) {
	defer func() {
		_ = recover() // the request that causes the panic panics again, where it is logged
		for _, p := range batch {
			close(p.verdict)
		}
	}()
	claims := make([]groth16.Claim, len(batch))
	for i, p := range batch {
		claims[i] = p.claim
	}
	verdicts := q.verifyBatch(claims, q.expected())
	for i, p := range batch {
		p.verdict <- verdicts[i]
	}
	q.learn(verdicts)
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
