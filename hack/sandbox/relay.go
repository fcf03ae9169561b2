package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/relaypool/relaypool/hack/freeport"
	"github.com/relaypool/relaypool/hack/localnet/market"
	"github.com/relaypool/relaypool/hack/process"
	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// Endpoint is an RPC endpoint in a relay's configuration.
type Endpoint struct {
	Name string `json:"name"`
	URL  string `json:"url"`
	// Budget is the endpoint's request budget in requests a second; 0 means no budget.
	Budget float64 `json:"requestsPerSecond,omitempty"`
}

// RelayOptions configure a relay. Name and Endpoints are required.
type RelayOptions struct {
	Name string
	// Listen and Operations are the addresses of the API and of the operations port. Empty
	// means a free port.
	Listen, Operations string
	Endpoints          []Endpoint
	// Router is a swap router's URL; empty means no router.
	Router string
	// APIKey, if not empty, is the key that clients have to present.
	APIKey string
	// Flags are further flags, after those that every relay gets.
	Flags []string
}

// Relay is a relay as a process, which can be started again after its end.
type Relay struct {
	// Process is nil until Start.
	*process.Process
	Name, LogFile string
	// URL is the URL of the relay's API, and Operations is the URL of its operations port,
	// both without a slash at the end.
	URL, Operations string

	sandbox *Sandbox
	args    []string
	apiKey  string
}

// NewRelay finds free ports, writes the endpoints' file and prepares the arguments. Start
// starts the process.
func (s *Sandbox) NewRelay(ctx context.Context, o RelayOptions) (*Relay, error) {
	free, err := freeport.Find(ctx, 2)
	if err != nil {
		return nil, err
	}
	if o.Listen == "" {
		o.Listen = free[0]
	}
	if o.Operations == "" {
		o.Operations = free[1]
	}
	endpoints, err := json.Marshal(o.Endpoints)
	if err != nil {
		return nil, fmt.Errorf("encode the endpoints: %w", err)
	}
	endpointsFile := s.File(o.Name + "-endpoints.json") // one for each relay, because another relay may be reading its own
	if err := os.WriteFile(endpointsFile, endpoints, 0o600); err != nil {
		return nil, fmt.Errorf("write the endpoints: %w", err)
	}
	logFile := s.logFile(o.Name)
	if err := os.Remove(logFile); err != nil && !errors.Is(err, os.ErrNotExist) { // the log of an earlier run
		return nil, fmt.Errorf("delete an old log: %w", err)
	}
	r := &Relay{Name: o.Name, LogFile: logFile, URL: "http://" + o.Listen, Operations: "http://" + o.Operations, sandbox: s, args: []string{
		"serve", "--listen=" + o.Listen, "--operations-listen=" + o.Operations,
		"--database-url-file=" + s.databaseFile(), "--rpc-endpoints-file=" + endpointsFile,
		"--genesis-hash=" + shieldpool.DevelopmentGenesisHash.String(), "--profile=" + shieldpool.Development().Name,
		"--verifying-key=" + s.keyFile(), "--fee-payer-key-file=" + s.File("payers"), "--compliance-public-key=" + s.Compliance,
	}}
	if o.Router != "" {
		r.args = append(r.args, "--router-url="+o.Router, "--router-program="+market.ProgramID.String())
	}
	if r.apiKey = o.APIKey; r.apiKey != "" {
		file := s.File(o.Name + "-api-keys")
		if err := os.WriteFile(file, []byte(r.apiKey+" client\n"), 0o600); err != nil {
			return nil, fmt.Errorf("write the API key: %w", err)
		}
		r.args = append(r.args, "--api-keys-file="+file)
	}
	r.args = append(r.args, o.Flags...)
	s.relays = append(s.relays, r)
	return r, nil
}

// Start starts the process; Await waits until it serves.
func (r *Relay) Start() (err error) {
	r.Process, err = r.sandbox.Start(r.Name, "relay", r.args...)
	return err
}

// Kill kills the process, if there is one, and waits for its end.
func (r *Relay) Kill() error {
	if r.Process == nil {
		return nil
	}
	return r.Process.Kill()
}

// Await waits until the relay is ready and has read the pool's tree from the chain.
// Readiness alone does not require the tree.
func (r *Relay) Await(ctx context.Context) error {
	return Await(ctx, r.Process, func(ctx context.Context) error {
		if _, err := Get(ctx, r.Operations+contract.ReadinessPath); err != nil {
			return err
		}
		_, err := get(ctx, r.URL+contract.MerkleRootPath, r.apiKey)
		return err
	})
}

const (
	// startWithin is the time that a program has until it serves. It is long, because the
	// machine may be busy with other programs.
	startWithin = 2 * time.Minute
	// callWithin is the timeout of one call. Await then calls again: the program may have
	// accepted the connection before it could answer.
	callWithin   = 10 * time.Second
	pollInterval = 50 * time.Millisecond
)

// Await repeats check until check succeeds. It fails at once when the process ends. After
// two minutes, or when ctx ends, it fails with the last error of check.
func Await(ctx context.Context, p *process.Process, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.Exited():
			return p.Ended()
		case <-ctx.Done():
			return fmt.Errorf("wait until a process serves: %w: %w; its log is %s", ctx.Err(), err, p.Log())
		case <-time.After(pollInterval):
		}
	}
}

// Get reads a page. Unless the status is 200, it returns the page and an error.
func Get(ctx context.Context, url string) ([]byte, error) { return get(ctx, url, "") }

func get(ctx context.Context, url, apiKey string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	if apiKey != "" {
		request.Header.Set("Authorization", "Bearer "+apiKey)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %s", url, answer.Status)
	}
	return content, errors.Join(err, answer.Body.Close())
}
