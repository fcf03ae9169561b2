package stand

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/relaypool/relaypool/hack/freeport"
	"github.com/relaypool/relaypool/hack/localnet/market"
	"github.com/relaypool/relaypool/hack/process"
	"github.com/relaypool/relaypool/hack/throughput/node"
	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

const (
	// readyWithin bounds the start of a process, stopWithin its end.
	readyWithin = 2 * time.Minute
	stopWithin  = time.Minute
	readyPoll   = 20 * time.Millisecond
	// connections of all relays to the database, and the most of each, which is
	// the relay's own default.
	connections, mostEach = 160, 40
	// longUnits are compute limits that never bind.
	longUnits = "1000000000"
	// chainPorts are those of RPC, admin port, note of sends and router.
	chainPorts = 4
)

// Setup is what one measurement runs on.
type Setup struct {
	// Ring is how many roots the program remembers.
	Ring int
	// Processes are the relays, Concurrency is each one's.
	Processes, Concurrency int
	// Rows is how many finished submissions the database begins with.
	Rows int
	// Swaps gives the relays the chain's swap router, and Concurrency places for
	// swaps as well.
	Swaps bool
	// Limits are the compute limits of a block as on mainnet; without, a block
	// takes whatever comes.
	Limits bool
}

// Stand is a set-up that runs.
type Stand struct {
	Setup
	// URLs are the relays' APIs, Operations their operations ports.
	URLs, Operations []string
	// Router is the swap router's API; empty without swaps.
	Router string

	lab      *Lab
	http     *http.Client
	database string
	folder   string
	chain    *process.Process
	relays   []*process.Process
	rpc      string
	admin    string
	sends    string
}

// Open starts chain and relays on a fresh copy of a database. Close ends them.
func (l *Lab) Open(ctx context.Context, setup Setup) (_ *Stand, err error) {
	l.opened++
	s := &Stand{
		Setup: setup, lab: l, database: fmt.Sprintf("run_%d", l.opened), folder: l.file(fmt.Sprintf("run-%d", l.opened)),
		http: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: readyWithin},
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close(context.WithoutCancel(ctx)))
		}
	}()
	if err := os.MkdirAll(s.folder, 0o750); err != nil {
		return nil, fmt.Errorf("make a folder for the run: %w", err)
	}
	if err := l.copyDatabase(ctx, s.database, setup.Rows); err != nil {
		return nil, fmt.Errorf("copy a database: %w", err)
	}
	ports, err := freeport.Find(ctx, chainPorts+2*setup.Processes)
	if err != nil {
		return nil, err
	}
	if err := s.startChain(ctx, ports[:chainPorts]); err != nil {
		return nil, err
	}
	if err := s.startRelays(ctx, ports[chainPorts:]); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Stand) startChain(ctx context.Context, ports []string) (err error) {
	s.rpc, s.admin, s.sends = "http://"+ports[0], "http://"+ports[1], "http://"+ports[2]
	args := []string{"node", "-listen", ports[0], "-admin", ports[1], "-sends", ports[2], "-vk", s.lab.key, "-ring", fmt.Sprint(s.Ring)}
	if !s.Limits {
		args = append(args, "-block-units", longUnits, "-account-units", longUnits)
	}
	if s.Swaps {
		s.Router, args = "http://"+ports[3], append(args, "-router", ports[3])
	}
	for _, key := range s.lab.keys {
		args = append(args, "-fund", key.String())
	}
	if s.chain, err = process.Start("the chain", filepath.Join(s.folder, "chain.log"), s.lab.Node, args...); err != nil {
		return err
	}
	return s.await(ctx, s.chain, s.rpc+"/health")
}

func (s *Stand) startRelays(ctx context.Context, ports []string) error {
	file := filepath.Join(s.folder, "database-url")
	if err := os.WriteFile(file, []byte(s.lab.server.URL(s.database)+"\n"), 0o600); err != nil {
		return fmt.Errorf("write the database's URL: %w", err)
	}
	for i := range s.Processes {
		api, operations := ports[2*i], ports[2*i+1]
		args := []string{
			"serve", "--listen=" + api, "--operations-listen=" + operations,
			"--database-url-file=" + file, fmt.Sprintf("--database-max-connections=%d", min(mostEach, connections/s.Processes)),
			"--rpc-url=" + s.rpc, "--genesis-hash=" + shieldpool.DevelopmentGenesisHash.String(), "--profile=" + shieldpool.Development().Name,
			fmt.Sprintf("--root-ring=%d", s.Ring), "--verifying-key=" + s.lab.key, "--fee-payer-key-file=" + s.lab.file("payers"),
			"--compliance-public-key=" + s.lab.compliance, "--rate-limit=0", "--spend-cap-transfers-day=0", fmt.Sprintf("--concurrency=%d", s.Concurrency),
			"--log-format=json", "--log-level=info",
		}
		if s.Swaps {
			args = append(args, "--router-url="+s.Router, "--router-program="+market.ProgramID.String(), fmt.Sprintf("--swap-concurrency=%d", s.Concurrency))
		}
		p, err := process.Start(fmt.Sprintf("relay %d", i+1), filepath.Join(s.folder, fmt.Sprintf("relay-%d.log", i+1)), s.lab.relay, args...)
		if err != nil {
			return err
		}
		s.relays, s.URLs, s.Operations = append(s.relays, p), append(s.URLs, "http://"+api), append(s.Operations, "http://"+operations)
	}
	for i, p := range s.relays {
		if err := s.await(ctx, p, s.Operations[i]+contract.ReadinessPath); err != nil {
			return err
		}
		// Ready says nothing of the chain; the root does.
		if err := s.await(ctx, p, s.URLs[i]+contract.MerkleRootPath); err != nil {
			return err
		}
	}
	return nil
}

// await asks a process until it answers 200.
func (s *Stand) await(ctx context.Context, p *process.Process, url string) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for {
		_, err := s.get(ctx, http.MethodGet, url, "")
		if err == nil {
			return nil
		}
		if ended := p.Ended(); ended != nil {
			return ended
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for a process to answer: %w; its log is %s", err, p.Log())
		case <-time.After(readyPoll):
		}
	}
}

func (s *Stand) get(ctx context.Context, method, url, body string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	answer, err := s.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }() // read to its end
	content, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s answered %d", method, request.URL.Path, answer.StatusCode)
	}
	return content, err
}

// Sends tells what was sent since the last time it was asked.
func (s *Stand) Sends(ctx context.Context) (sends node.Sends, err error) {
	raw, err := s.get(ctx, http.MethodGet, s.sends+node.SendsPath, "")
	if err != nil {
		return sends, err
	}
	if err := json.Unmarshal(raw, &sends); err != nil {
		return sends, fmt.Errorf("decode the note of sends: %w", err)
	}
	return sends, nil
}

// Calls counts the RPC calls so far, by method.
func (s *Stand) Calls(ctx context.Context) (map[string]uint64, error) {
	raw, err := s.get(ctx, http.MethodGet, s.admin+"/stats", "")
	if err != nil {
		return nil, err
	}
	var stats map[string]struct {
		Calls map[string]uint64 `json:"calls"`
	}
	if err := json.Unmarshal(raw, &stats); err != nil {
		return nil, fmt.Errorf("decode the chain's statistics: %w", err)
	}
	return stats["default"].Calls, nil
}

// RouterCalls counts the calls of the swap router, all together.
func (s *Stand) RouterCalls(ctx context.Context) (calls uint64, err error) {
	if !s.Swaps {
		return 0, nil
	}
	raw, err := s.get(ctx, http.MethodGet, s.admin+"/router", "")
	if err != nil {
		return 0, err
	}
	var router struct {
		Stats struct {
			Calls map[string]uint64 `json:"calls"`
		} `json:"stats"`
	}
	if err := json.Unmarshal(raw, &router); err != nil {
		return 0, fmt.Errorf("decode the router's statistics: %w", err)
	}
	for _, n := range router.Stats.Calls {
		calls += n
	}
	return calls, nil
}

// DropSends has the chain lose what it is sent: nothing lands any more.
func (s *Stand) DropSends(ctx context.Context) error {
	_, err := s.get(ctx, http.MethodPut, s.admin+"/endpoints/default/faults", `[{"method":"sendTransaction","drop":true}]`)
	return err
}

// ProfileChain gives a profile of the chain's process.
func (s *Stand) ProfileChain(ctx context.Context, d time.Duration) ([]byte, error) {
	return s.get(ctx, http.MethodGet, s.sends+node.ProfilePath+"?for="+d.String(), "")
}

// Metrics reads each relay's page.
func (s *Stand) Metrics(ctx context.Context) ([][]byte, error) {
	var pages [][]byte
	for _, operations := range s.Operations {
		page, err := s.get(ctx, http.MethodGet, operations+contract.MetricsPath, "")
		if err != nil {
			return nil, err
		}
		pages = append(pages, page)
	}
	return pages, nil
}

// Parts are the process ids of each part. Postgres' children are its own to find.
func (s *Stand) Parts() (relays []int, chain, database int) {
	for _, p := range s.relays {
		relays = append(relays, p.PID())
	}
	return relays, s.chain.PID(), s.lab.server.Pid()
}

// Close ends everything. What is still in flight is not waited for.
func (s *Stand) Close(ctx context.Context) error {
	var errs []error
	for _, p := range s.relays {
		errs = append(errs, p.Kill())
	}
	if s.chain != nil {
		errs = append(errs, s.chain.Stop(stopWithin))
	}
	return errors.Join(append(errs, s.lab.dropDatabase(ctx, s.database))...)
}
