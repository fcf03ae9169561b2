package wallet

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

// closeTimeout is the time that Close waits for an unfinished proof before it kills the program.
const closeTimeout = 10 * time.Second

// Options of StartProver.
type Options struct {
	// Progress receives a line for each slow step, and the program's warnings. Required.
	Progress io.Writer
	// Source is the folder hack/circuit. The default is in the checkout around the working
	// folder.
	Source string
	// Cache is the folder for the built program and the lock. The default is relaypool/circuit in
	// the user's cache folder, where the program always stores its keys.
	Cache string
}

// Prover is a running circuit program. It is safe for concurrent use. It makes one proof at a time,
// because a proof uses every core.
type Prover struct {
	// Constraints is the number of constraints in the circuit.
	Constraints int
	// KeySHA256 is the hash of the verifying key, in lower-case hex, with which a relay identifies
	// the key.
	KeySHA256 string

	program string
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	stdout  *bufio.Reader
	// turn is full while a proof is made, and for good when stopped is closed.
	turn    chan struct{}
	stopped chan struct{}
	// proofs is the number of proofs so far. Only the proof under way uses it.
	proofs int64
	close  func() error
}

type reply struct {
	answer answer
	err    error
}

type wireRequest struct {
	ID      int64       `json:"id"`
	Witness wireWitness `json:"witness"`
}

// answer is one line of the program's output: the ready message or the result of a request.
type answer struct {
	Ready        bool   `json:"ready"`
	Constraints  int    `json:"constraints"`
	KeySHA256    string `json:"vk_sha256"`
	ID           int64  `json:"id"`
	Proof        string `json:"proof"`
	PublicInputs string `json:"public_inputs"`
	Millis       int64  `json:"millis"`
	Error        string `json:"error"`
}

// errStopped is the error of Prove after Close, or after the program has ended unexpectedly.
var errStopped = errors.New("the circuit's program has stopped: start a new prover")

// StartProver builds hack/circuit if its sources have changed, starts the program and waits until
// the program has its keys. If the sources do not build, the error contains the compiler's output.
// ctx limits only the start; Close ends the program.
func StartProver(ctx context.Context, o Options) (*Prover, error) {
	if o.Progress == nil {
		return nil, errors.New("start prover: Options.Progress is missing: set it, for instance to io.Discard")
	}
	var err error
	if o.Source == "" {
		if o.Source, err = findSource(ctx); err != nil {
			return nil, fmt.Errorf("start prover: %w", err)
		}
	}
	if o.Cache == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("start prover: find the user's cache folder (set XDG_CACHE_HOME or HOME, or Options.Cache): %w", err)
		}
		o.Cache = filepath.Join(cache, "relaypool", "circuit")
	}
	unlock, err := lock(ctx, o.Cache)
	if err != nil {
		return nil, fmt.Errorf("start prover: %w", err)
	}
	defer unlock()
	program, err := build(ctx, o.Source, o.Cache, o.Progress)
	if err != nil {
		return nil, fmt.Errorf("start prover: %w", err)
	}
	p, err := launch(ctx, program, o.Progress)
	if err != nil {
		return nil, fmt.Errorf("start prover: %w", err)
	}
	return p, nil
}

func launch(ctx context.Context, program string, progress io.Writer) (*Prover, error) {
	p := &Prover{program: program, turn: make(chan struct{}, 1), stopped: make(chan struct{})}
	p.close = sync.OnceValue(p.stop)
	p.cmd = exec.CommandContext(context.WithoutCancel(ctx), program, "serve")
	p.cmd.Stderr = progress
	// The child has its own process group: Ctrl-C does not reach it, and Close ends it.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.stdout = bufio.NewReader(stdout)
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	// Until the program is ready, the end of ctx kills it, which ends the read below.
	cancel := context.AfterFunc(ctx, func() { _ = p.cmd.Process.Kill() })
	ready, err := p.readLine()
	if !cancel() {
		err = ctx.Err()
	}
	if err == nil && !ready.Ready {
		err = errors.New("the first line of the program is not the ready message")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("wait until the circuit's program is ready (the progress output has its messages): %w", err), p.Close())
	}
	p.Constraints, p.KeySHA256 = ready.Constraints, ready.KeySHA256
	return p, nil
}

// Prove returns the proof and the public inputs in the form of POST /transact, and the time that
// the circuit's program needed. It returns an error for a witness that breaks a rule of the
// circuit.
func (p *Prover) Prove(ctx context.Context, w *Witness) (proof [shieldpool.ProofLength]byte, publicInputs [shieldpool.PublicInputsLength]byte, took time.Duration, err error) {
	select {
	case p.turn <- struct{}{}:
	case <-p.stopped:
		return proof, publicInputs, 0, errStopped
	case <-ctx.Done():
		return proof, publicInputs, 0, fmt.Errorf("wait for the prover: %w", ctx.Err())
	}
	replies := make(chan reply, 1)
	go func() { // the program makes the proof to its end, whether or not the caller waits
		a, err := p.exchange(w.wire())
		replies <- reply{answer: a, err: err}
		if err != nil {
			close(p.stopped)
			return
		}
		<-p.turn
	}()
	select {
	case r := <-replies:
		if r.err == nil {
			r.err = r.answer.decode(proof[:], publicInputs[:])
		}
		return proof, publicInputs, time.Duration(r.answer.Millis) * time.Millisecond, r.err
	case <-ctx.Done():
		return proof, publicInputs, 0, fmt.Errorf("wait for the proof: %w", ctx.Err())
	}
}

func (a *answer) decode(proof, publicInputs []byte) error {
	if a.Error != "" {
		return fmt.Errorf("prove: %s", a.Error)
	}
	for _, field := range []struct {
		name, text string
		into       []byte
	}{{"proof", a.Proof, proof}, {"public inputs", a.PublicInputs, publicInputs}} {
		b, err := hex.DecodeString(field.text)
		if err != nil || len(b) != len(field.into) {
			return fmt.Errorf("prove: %s must be %d bytes in hex, the circuit's program sent %d characters", field.name, len(field.into), len(field.text))
		}
		copy(field.into, b)
	}
	return nil
}

// VerificationKey returns the verifying key in the JSON of snarkjs' verification_key.json.
func (p *Prover) VerificationKey(ctx context.Context) ([]byte, error) {
	output, err := exec.CommandContext(ctx, p.program, "vk").Output()
	if err != nil {
		return nil, fmt.Errorf("export the verifying key: %w", err)
	}
	return output, nil
}

// Close waits for an unfinished proof, ends the program and waits for its end. Further calls return
// the result of the first call.
func (p *Prover) Close() error {
	return p.close()
}

func (p *Prover) stop() error {
	kill := time.AfterFunc(closeTimeout, func() { _ = p.cmd.Process.Kill() })
	defer kill.Stop()
	select {
	case p.turn <- struct{}{}:
		close(p.stopped)
	case <-p.stopped:
	}
	// The end of its input ends the program. If the program has died, the pipe may be closed
	// already.
	_ = p.stdin.Close()
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("stop the circuit's program: %w", err)
	}
	return nil
}

func (p *Prover) exchange(w wireWitness) (answer, error) {
	p.proofs++
	if err := json.NewEncoder(p.stdin).Encode(wireRequest{ID: p.proofs, Witness: w}); err != nil {
		return answer{}, errors.Join(errStopped, err)
	}
	a, err := p.readLine()
	if err != nil {
		return answer{}, errors.Join(errStopped, err)
	}
	if a.ID != p.proofs {
		return answer{}, fmt.Errorf("the circuit's program answered request %d instead of %d", a.ID, p.proofs)
	}
	return a, nil
}

func (p *Prover) readLine() (answer, error) {
	line, err := p.stdout.ReadBytes('\n')
	if err != nil {
		return answer{}, fmt.Errorf("read from the circuit's program: %w", err)
	}
	var a answer
	if err := json.Unmarshal(line, &a); err != nil {
		return answer{}, fmt.Errorf("the circuit's program sent %d bytes that are not a JSON object", len(line))
	}
	return a, nil
}
