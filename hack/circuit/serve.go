package main

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/relaypool/relaypool/hack/circuit/setup"
	"github.com/relaypool/relaypool/hack/circuit/transaction"
)

// maxRequest is the maximum length of a line in bytes. A request has about 8 KB.
const maxRequest = 1 << 20

type ready struct {
	Ready       bool   `json:"ready"`
	Constraints int    `json:"constraints"`
	KeySHA256   string `json:"vk_sha256"`
}

type request struct {
	ID      int64                `json:"id"`
	Witness *transaction.Witness `json:"witness"`
}

type answer struct {
	ID           int64  `json:"id"`
	Proof        string `json:"proof,omitempty"`
	PublicInputs string `json:"public_inputs,omitempty"`
	Millis       int64  `json:"millis,omitempty"`
	Error        string `json:"error,omitempty"`
}

// serve reports that it is ready and answers requests in order until its input ends. It makes one
// proof at a time, because a proof uses every core.
func serve(keys *setup.Keys, in io.Reader, out io.Writer) error {
	write := json.NewEncoder(out)
	hash := setup.Hash(keys.Verifying)
	err := write.Encode(ready{
		Ready:       true,
		Constraints: keys.Circuit.GetNbConstraints(),
		KeySHA256:   hex.EncodeToString(hash[:]),
	})
	if err != nil {
		return fmt.Errorf("write the ready message: %w", err)
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxRequest)
	for lines.Scan() {
		if err := write.Encode(respond(keys, lines.Bytes())); err != nil {
			return fmt.Errorf("write an answer: %w", err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read requests (at most %d bytes a line): %w", maxRequest, err)
	}
	return nil
}

func respond(keys *setup.Keys, line []byte) answer {
	var req request
	if err := json.Unmarshal(line, &req); err != nil {
		return answer{ID: req.ID, Error: fmt.Sprintf("request of %d bytes is not the JSON object that was expected, with id and witness: %T", len(line), err)}
	}
	if req.Witness == nil {
		return answer{ID: req.ID, Error: "request has no witness: send {\"id\": n, \"witness\": {...}}"}
	}
	start := time.Now()
	proof, public, err := prove(keys, req.Witness)
	if err != nil {
		return answer{ID: req.ID, Error: err.Error()}
	}
	return answer{
		ID:           req.ID,
		Proof:        hex.EncodeToString(proof[:]),
		PublicInputs: hex.EncodeToString(public[:]),
		Millis:       time.Since(start).Milliseconds(),
	}
}

func prove(keys *setup.Keys, w *transaction.Witness) (proof [setup.ProofSize]byte, public [transaction.PublicInputsSize]byte, err error) {
	assignment, err := w.Assign()
	if err != nil {
		return proof, public, err
	}
	if public, err = w.PublicInputs(); err != nil {
		return proof, public, err
	}
	proof, err = keys.Prove(assignment)
	return proof, public, err
}
