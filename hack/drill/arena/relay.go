package arena

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/relaypool/relaypool/hack/load"
	"github.com/relaypool/relaypool/hack/process"
	"github.com/relaypool/relaypool/hack/sandbox"
	"github.com/relaypool/relaypool/relay/contract"
)

const (
	// restartPause is the pause before a relay that exited by itself is started
	// again, as a kubelet does.
	restartPause = time.Second
	// readyPoll is how often a starting relay is asked whether it is ready.
	readyPoll = 50 * time.Millisecond
)

// Exit is the end of a relay's process.
type Exit struct {
	Relay int       `json:"relay"`
	At    time.Time `json:"at"`
	// Signal is the signal that was sent; it is empty when the relay ended by itself.
	// Took is the time since that signal. Lived is the time since the start.
	Signal string        `json:"asked"`
	Took   time.Duration `json:"took_ns"`
	Lived  time.Duration `json:"lived_ns"`
	// Fault describes what was wrong with the exit; it is empty for an orderly exit and a kill.
	Fault string `json:"fault,omitempty"`
}

// relay is one relay process, started again whenever it ends.
type relay struct {
	*sandbox.Relay
	index      int
	recordExit func(Exit)

	mu sync.Mutex
	// wanted is false while an event keeps the relay down.
	wanted, running bool
	startedAt       time.Time
	signal          string
	// changed wakes keepRunning.
	changed chan struct{}
}

// keepRunning runs the process until ctx ends, restarting it while it is wanted.
func (r *relay) keepRunning(ctx context.Context) {
	for ctx.Err() == nil {
		r.mu.Lock()
		if !r.wanted {
			r.mu.Unlock()
			select {
			case <-ctx.Done():
			case <-r.changed:
			}
			continue
		}
		err := r.Start()
		r.startedAt, r.signal, r.running = time.Now(), "", err == nil
		r.mu.Unlock()
		if err == nil {
			<-r.Exited()
			err = r.Ended()
		}
		r.mu.Lock()
		r.running = false
		signal, lived := r.signal, time.Since(r.startedAt)
		r.mu.Unlock()
		if signal == "" {
			r.recordExit(Exit{Relay: r.index, At: time.Now(), Lived: lived, Fault: err.Error()})
			load.Sleep(ctx, restartPause)
		}
	}
}

func (r *relay) setWanted(on bool) {
	r.mu.Lock()
	r.wanted = on
	r.mu.Unlock()
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// kill ends the process by SIGKILL and keeps it down.
func (r *relay) kill() error {
	p := r.recordSignal("SIGKILL")
	if p == nil {
		return nil
	}
	return p.Kill()
}

// stop asks the process to end and keeps it down.
func (r *relay) stop() {
	p := r.recordSignal("SIGTERM")
	if p == nil {
		return
	}
	began := time.Now()
	// The pre-stop time passes before SIGTERM, so it does not count for the process.
	err := p.Stop(contract.TerminationGrace - contract.PreStop)
	r.mu.Lock()
	lived, killed := time.Since(r.startedAt), r.signal == "SIGKILL"
	r.mu.Unlock()
	if killed {
		return // another event killed it while it drained
	}
	if err == nil && !p.Succeeded() {
		err = p.Ended()
	}
	exit := Exit{Relay: r.index, At: time.Now(), Signal: "SIGTERM", Took: time.Since(began), Lived: lived}
	if err != nil {
		exit.Fault = err.Error()
	}
	r.recordExit(exit)
}

// recordSignal records the signal that ends the process, and returns the process; nil if none runs.
func (r *relay) recordSignal(signal string) *process.Process {
	r.setWanted(false)
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.running {
		return nil
	}
	r.signal = signal
	return r.Process
}

func (r *relay) awaitReady(ctx context.Context) error {
	for {
		call, cancel := context.WithTimeout(ctx, time.Second)
		_, err := sandbox.Get(call, r.Operations+contract.ReadinessPath)
		cancel()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("wait until relay %d is ready: %w: %w; its log is %s", r.index+1, context.Cause(ctx), err, r.LogFile)
		}
		load.Sleep(ctx, readyPoll)
	}
}
