package load

import (
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

// Call is the kind of a client's request to a relay.
type Call string

// The calls that the journal records.
const (
	CallTransact Call = "transact"
	CallWithdraw Call = "withdraw"
	CallSwap     Call = "transact_swap"
	CallStatus   Call = "status"
)

// Answer is the answer to a client's request, or the lack of one.
type Answer struct {
	// Sent is the time at which the request was sent. At is the time at which its answer
	// arrived or it failed.
	Sent, At time.Time
	// Relay is the index of the relay among Options.Relays.
	Relay int
	Call  Call
	// Status is the HTTP status. It is 0 without a complete answer: Fault is then
	// the kind of failure, and the submission may have been accepted all the same.
	Status int
	Fault  string

	// RequestID is the submission's id; zero if the answer has none.
	RequestID uuid.UUID
	// State is pending, processing, completed, failed or, for /withdraw, queued;
	// empty when the answer has none.
	State string
	// Code is the machine code of a refusal or of a failed submission.
	Code string
	// Signature is base58; empty until the submission, or a swap's first leg, is completed.
	Signature string
	Finalized bool
	// RetryAfter is how long the relay asks the client to wait.
	RetryAfter time.Duration

	SwapAnswer
}

// SwapAnswer is the part of an answer about a swap; fields not in the answer are empty.
type SwapAnswer struct {
	// Phase is funded, quoted, executed or refunded. Waits is the reason why the swap makes
	// no progress.
	Phase string `json:"swap_phase"`
	Waits string `json:"swap_waits"`
	// SwapSignature is the signature of the execution, RefundSignature is that of the refund.
	SwapSignature   string `json:"swap_signature"`
	RefundSignature string `json:"refund_signature"`
}

const refundedCode = "swap_refunded"

// Refunded reports whether the answer says that the swap's lamports went back to the
// recipient's wallet. Its first leg is on the chain then.
func (a *Answer) Refunded() bool { return a.Code == refundedCode }

// Executed reports whether the answer says that the swap paid its tokens.
func (a *Answer) Executed() bool { return a.State == "completed" && a.Phase == "executed" }

// Accepted reports whether the answer promises an outcome: a 2xx to a submission.
func (a *Answer) Accepted() bool {
	return a.Call != CallStatus && a.Status/100 == 2 && a.RequestID != uuid.Nil
}

// Failed reports whether the answer says that the submission failed: its state is failed, or
// the answer is a 4xx with a request id. A swap that was refunded did not fail.
func (a *Answer) Failed() bool {
	if a.Refunded() {
		return false
	}
	return a.State == "failed" || a.Call != CallStatus && a.Status/100 == 4 && a.RequestID != uuid.Nil
}

// Request is one proof with the requests sent for it and their answers.
type Request struct {
	Inputs shieldpool.PublicInputs
	// Proofs are all proofs that the client made for these inputs; a repeat may send
	// another proof than the first try.
	Proofs [][shieldpool.ProofLength]byte
	// Recipient is zero for transfers.
	Recipient solana.PublicKey
	// Swap is nil unless the request is for a swap.
	Swap  *Swap
	Notes [][]byte
	// IdempotencyKey is empty when the client sends none.
	IdempotencyKey string
	Answers        []Answer
}

// Record is everything about one spend: a request for each root that the client proved against.
type Record struct {
	// Number counts spends from 0.
	Number   int
	Kind     shieldpool.Kind
	Requests []Request
	// Ended says that the client ended by itself, with an outcome or because it gave
	// up. It is false when the client was stopped.
	Ended bool
}

// Progress counts what the answers to clients report, each submission once.
type Progress struct {
	// Spends counts the started spends; Running counts the unfinished ones.
	Spends, Running int
	// Accepted counts submissions with a 2xx. Completed, Finalized and Failed count
	// submissions by the states in the answers that clients got.
	Accepted, Completed, Finalized, Failed int
	// Refunded counts swaps that returned their lamports; they count neither as
	// completed nor as failed.
	Refunded int
	// Busy counts answers with 503 or 429. Silent counts requests without an answer.
	Busy, Silent int
}

// Journal records all answers to clients. Its methods may be called concurrently.
type Journal struct {
	mu       sync.Mutex
	records  []*Record
	states   map[uuid.UUID]knownState
	progress Progress
}

// knownState is the state of a submission according to the answers to clients.
type knownState struct {
	state string
	// final means that no older answer of another relay may change it.
	final bool
}

func newJournal() *Journal { return &Journal{states: make(map[uuid.UUID]knownState)} }

// Records returns a copy of all records.
func (j *Journal) Records() []Record {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := make([]Record, len(j.records))
	for i, r := range j.records {
		out[i] = *r
		out[i].Requests = slices.Clone(r.Requests)
		for k := range out[i].Requests {
			request := &out[i].Requests[k]
			request.Answers = slices.Clone(request.Answers)
			request.Proofs = slices.Clone(request.Proofs)
		}
	}
	return out
}

// Progress returns the counts so far.
func (j *Journal) Progress() Progress {
	j.mu.Lock()
	defer j.mu.Unlock()
	p := j.progress
	p.Accepted = len(j.states)
	for _, s := range j.states {
		switch s.state {
		case "completed":
			p.Completed++
			if s.final {
				p.Finalized++
			}
		case "refunded":
			p.Refunded++
		case "failed":
			p.Failed++
		}
	}
	return p
}

func (j *Journal) begin(s *spend) *Record {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := &Record{Number: s.number, Kind: s.kind}
	j.records = append(j.records, r)
	j.progress.Spends++
	j.progress.Running++
	return r
}

func (j *Journal) end(r *Record, ended bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r.Ended = ended
	j.progress.Running--
}

// request adds a request to a record, before it is first sent, and returns its index.
func (j *Journal) request(r *Record, q Request) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	r.Requests = append(r.Requests, q)
	return len(r.Requests) - 1
}

func (j *Journal) proof(r *Record, request int, proof [shieldpool.ProofLength]byte) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r.Requests[request].Proofs = append(r.Requests[request].Proofs, proof)
}

func (j *Journal) answer(r *Record, request int, a *Answer) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r.Requests[request].Answers = append(r.Requests[request].Answers, *a)
	switch a.Status {
	case 0:
		j.progress.Silent++
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		j.progress.Busy++
	}
	if a.RequestID == uuid.Nil {
		return
	}
	if _, known := j.states[a.RequestID]; !known && !a.Accepted() {
		// This submission failed, and the client never learned that it was accepted.
		return
	}
	state := a.State
	switch {
	case a.Refunded():
		state = "refunded"
	case a.Failed():
		state = "failed"
	}
	// An answer of another relay may be older than the last one.
	if state != "" && !j.states[a.RequestID].final {
		j.states[a.RequestID] = knownState{state, a.Finalized}
	}
}
