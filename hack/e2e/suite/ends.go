package suite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/relaypool/relaypool/hack/e2e/cluster"
	"github.com/relaypool/relaypool/hack/e2e/judge"
	"github.com/relaypool/relaypool/hack/e2e/report"
)

const (
	// leaseLost is what an operator says last that could not renew its Lease. It has
	// to end then, and a cluster whose API server stalls for ten seconds brings any
	// operator to it.
	leaseLost = "leader election lost"
	// lastWords are where a log is searched for that.
	lastWords = 4 << 10
)

// ends holds that no relay and no operator ended without a reason, from the
// installation on: whoever was not killed by this suite was told to end, and
// ended by itself, with 0, within its pod's grace.
func (s *suite) ends(ctx context.Context, r *report.Scenario) error {
	for _, in := range []string{namespace, OperatorNamespace} {
		if err := s.noneEnding(ctx, in); err != nil {
			return err
		}
	}
	var errs []error
	told, killed := 0, 0
	for _, of := range []struct {
		watcher   *cluster.Watcher
		container string
	}{{s.fleets, relayContainer}, {s.operators, operatorContainer}} {
		ends, victims, err := s.gather(of.watcher, of.container)
		if err != nil {
			return err
		}
		tally, err := judge.Ends(ends, victims)
		errs = append(errs, err)
		told, killed = told+tally.Asked, killed+tally.Killed
		r.Saw("container %s: %d were told to end and did, the slowest after %.0f s; %d were killed by this suite; %d ended as Jobs do; %d gave way when it could not renew the Lease",
			of.container, tally.Asked, tally.Slowest.Seconds(), tally.Killed, tally.Finished, tally.LostLease)
		for _, fault := range of.watcher.Faults() {
			r.Saw("%s", fault)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	r.Sum("%d containers were told to end and did, %d were killed by this suite, and none ended otherwise", told, killed)
	return nil
}

// noneEnding waits until each pod that was told to end has.
func (s *suite) noneEnding(ctx context.Context, in string) error {
	return cluster.Await(ctx, "no pod of "+in+" is ending", cluster.Minutes(3), func(ctx context.Context) (string, error) {
		n, err := s.Cluster.Ending(ctx, in)
		if err == nil && n > 0 {
			return fmt.Sprintf("%d are", n), nil
		}
		return "", err
	})
}

// gather takes the ends of a container's name for the judgement, and which of them
// this suite brought about.
func (s *suite) gather(w *cluster.Watcher, container string) (ends []judge.End, victims map[string]bool, err error) {
	victims = make(map[string]bool)
	for id, of := range s.victims {
		if of == container {
			victims[id] = true
		}
	}
	for _, e := range w.Exits() {
		if e.Container != container {
			continue
		}
		end := judge.End{
			Pod: e.Pod, Container: e.Container, ID: e.ID, Code: e.Code, Reason: e.Reason, At: e.At, Asked: e.Asked, Grace: e.Grace, Finite: e.Finite,
		}
		if container == operatorContainer && e.Code != 0 {
			if end.LostLease, err = endsWith(filepath.Join(w.Folder(), e.Log), leaseLost); err != nil {
				return nil, nil, err
			}
		}
		ends = append(ends, end)
	}
	return ends, victims, nil
}

// endsWith looks for words at the end of a file; one that is not there has none.
func endsWith(path, words string) (found bool, err error) {
	file, err := os.Open(filepath.Clean(path))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read a log: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return false, fmt.Errorf("read a log: %w", err)
	}
	tail, err := io.ReadAll(io.NewSectionReader(file, max(0, info.Size()-lastWords), lastWords))
	if err != nil {
		return false, fmt.Errorf("read a log: %w", err)
	}
	return bytes.Contains(tail, []byte(words)), nil
}

// exitOf waits until the end of a container was seen.
func exitOf(ctx context.Context, w *cluster.Watcher, id string) (found cluster.Exit, err error) {
	err = cluster.Await(ctx, "container "+id+" has ended", cluster.Minutes(3), func(context.Context) (string, error) {
		for _, e := range w.Exits() {
			if e.ID == id {
				found = e
				return "", nil
			}
		}
		return "it was not seen to end", nil
	})
	return found, err
}
