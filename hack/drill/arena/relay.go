package arena

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/relaypool/relaypool/hack/process"
	"github.com/relaypool/relaypool/relay/contract"
)

const (
	// restartPause is what passes before a relay that ended by itself is started
	// again, as a kubelet does.
	restartPause = time.Second
	// readyPoll is how often a starting relay is asked whether it is ready.
	readyPoll = 50 * time.Millisecond
)

// Exit is the end of a relay's process.
type Exit struct {
	Relay int       `json:"relay"`
	At    time.Time `json:"at"`
	// Asked says by which signal, empty when it ended by itself. Took is the time
	// from that signal, Lived that from its start.
	Asked string        `json:"asked"`
	Took  time.Duration `json:"took_ns"`
	Lived time.Duration `json:"lived_ns"`
	// Fault is what was wrong with it; empty for an orderly end and for a kill.
	Fault string `json:"fault,omitempty"`
}

// relay is one relay process, started again whenever it ends.
type relay struct {
	index           int
	program, log    string
	url, operations string
	arguments       []string
	exits           func(Exit)

	mu sync.Mutex
	// wanted is false while an event keeps it down.
	wanted  bool
	process *process.Process
	born    time.Time
	asked   string
	// changed wakes the keeper.
	changed chan struct{}
}

// keep runs the process until ctx ends, whenever it is wanted.
func (r *relay) keep(ctx context.Context) {
	for ctx.Err() == nil {
		r.mu.Lock()
		wanted := r.wanted
		r.mu.Unlock()
		if !wanted {
			select {
			case <-ctx.Done():
			case <-r.changed:
			}
			continue
		}
		r.live(ctx)
	}
}

// live starts the process and waits for its end.
func (r *relay) live(ctx context.Context) {
	began := time.Now()
	p, err := process.Start(fmt.Sprintf("relay %d", r.index+1), r.log, r.program, r.arguments...)
	if err != nil {
		r.exits(Exit{Relay: r.index, At: time.Now(), Fault: err.Error()})
		wait(ctx, restartPause)
		return
	}
	r.mu.Lock()
	r.process, r.born, r.asked = p, began, ""
	stale := !r.wanted // an event may have come between
	r.mu.Unlock()
	if stale {
		_ = p.Kill()
	}
	<-p.Exited()
	r.mu.Lock()
	asked := r.asked
	r.process = nil
	r.mu.Unlock()
	if asked == "" && !stale {
		r.exits(Exit{Relay: r.index, At: time.Now(), Lived: time.Since(began), Fault: p.Ended().Error()})
		wait(ctx, restartPause)
	}
}

// want lets the relay run, or not.
func (r *relay) want(on bool) {
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
	p := r.take("SIGKILL")
	if p == nil {
		return nil
	}
	return p.Kill()
}

// stop asks the process to end and keeps it down.
func (r *relay) stop() {
	p := r.take("SIGTERM")
	if p == nil {
		return
	}
	began := time.Now()
	// The time before SIGTERM is not the process' own.
	err := p.Stop(contract.TerminationGrace - contract.PreStop)
	r.mu.Lock()
	lived, killed := time.Since(r.born), r.asked == "SIGKILL"
	r.mu.Unlock()
	if killed {
		return // by another event, which came while it drained
	}
	exit := Exit{Relay: r.index, At: time.Now(), Asked: "SIGTERM", Took: time.Since(began), Lived: lived}
	switch {
	case err != nil:
		exit.Fault = err.Error()
	case !p.Succeeded():
		exit.Fault = p.Ended().Error()
	}
	r.exits(exit)
}

func (r *relay) take(signal string) *process.Process {
	r.want(false)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.process != nil {
		r.asked = signal
	}
	return r.process
}

// ready asks the relay's operations port.
func (r *relay) ready(ctx context.Context, client *http.Client) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.operations+contract.ReadinessPath, http.NoBody)
	if err != nil {
		return err
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("relay %d answers %d at %s", r.index+1, answer.StatusCode, contract.ReadinessPath)
	}
	return errors.Join(err, answer.Body.Close())
}

// awaitReady waits until the relay is ready, or ctx ends.
func (r *relay) awaitReady(ctx context.Context, client *http.Client) error {
	for {
		err := r.ready(ctx, client)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("wait until relay %d is ready: %w: %w; its log is %s", r.index+1, context.Cause(ctx), err, r.log)
		}
		wait(ctx, readyPoll)
	}
}
