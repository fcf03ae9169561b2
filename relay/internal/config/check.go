package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/groth16"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// secretFile reads a secret, less the white space around it.
func secretFile(flag, path string) (Secret, error) {
	if path == "" {
		return Secret{}, fmt.Errorf("%s is missing: write the value to a file of mode 0600 and name it here", flag)
	}
	raw, err := os.ReadFile(path) //nolint:gosec // the path is the operator's own
	if err != nil {
		return Secret{}, fmt.Errorf("%s: %w", flag, err)
	}
	value := strings.TrimSpace(string(raw))
	if value == "" {
		return Secret{}, fmt.Errorf("%s: the file %s is empty", flag, path)
	}
	return Secret{value}, nil
}

func (r RPC) endpoint() (Secret, error) {
	s := Secret{r.URL}
	switch {
	case r.URL != "" && r.URLFile != "":
		return Secret{}, errors.New("--rpc-url and --rpc-url-file are both set: give one")
	case r.URL == "" && r.URLFile == "":
		return Secret{}, errors.New("--rpc-url is missing: give the Solana RPC endpoint, or --rpc-url-file when its URL holds credentials")
	case r.URLFile != "":
		var err error
		if s, err = secretFile("--rpc-url-file", r.URLFile); err != nil {
			return s, err
		}
	}
	u, err := url.Parse(s.value)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return Secret{}, fmt.Errorf("the RPC endpoint of %d characters is no URL: expected http:// or https:// and a host", len(s.value))
	}
	return s, nil
}

func (s Serve) profile() (*shieldpool.Profile, error) {
	p, err := shieldpool.BuiltIn(s.Profile)
	if err != nil {
		return nil, fmt.Errorf("--profile: %w", err)
	}
	if s.ProgramID != "" {
		if p.ProgramID, err = solana.PublicKeyFromBase58(s.ProgramID); err != nil {
			return nil, fmt.Errorf("--program-id is not 32 bytes in base58, it has %d characters", len(s.ProgramID))
		}
	}
	p.AllowOffCurveRecipient = s.AllowOffCurveRecipient
	if len(s.SignInMessages) > 0 {
		p.SignInMessages = s.SignInMessages
	}
	return p, nil
}

func verifyingKey(path string) (*groth16.Key, error) {
	if path == "" {
		return nil, errors.New("--verifying-key is missing: give snarkjs' verification_key.json of the pool's circuit")
	}
	raw, err := os.ReadFile(path) //nolint:gosec // the path is the operator's own
	if err != nil {
		return nil, fmt.Errorf("--verifying-key: %w", err)
	}
	k, err := groth16.ParseKey(raw)
	if err != nil {
		return nil, fmt.Errorf("--verifying-key %s: %w", path, err)
	}
	if k.NPublic() != shieldpool.SignalCount {
		return nil, fmt.Errorf("--verifying-key %s has %d public signals, the pool's circuit has %d", path, k.NPublic(), shieldpool.SignalCount)
	}
	return k, nil
}

func (s Serve) checkNumbers() (problems []error) {
	fail := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if s.PriorityFeeFloor > s.PriorityFeeCap {
		fail("--priority-fee-floor is %d, above --priority-fee-cap of %d", s.PriorityFeeFloor, s.PriorityFeeCap)
	}
	if s.PriorityFeePercentile < 0 || s.PriorityFeePercentile > 100 {
		fail("--priority-fee-percentile is %d, expected 0 to 100", s.PriorityFeePercentile)
	}
	if s.Concurrency < 1 || s.Concurrency > 10_000 {
		fail("--concurrency is %d, expected 1 to 10000", s.Concurrency)
	}
	const leastConnections = 4
	if s.Database.MaxConnections < leastConnections {
		fail("--database-max-connections is %d, expected at least %d: one listens, and the queue needs two", s.Database.MaxConnections, leastConnections)
	}
	if s.Wait < 0 || s.WaitMax < time.Second || s.Wait > s.WaitMax {
		fail("--wait is %s and --wait-max %s: expected 0 ≤ wait ≤ wait-max, and wait-max of a second or more", s.Wait, s.WaitMax)
	}
	if s.RateLimit < 0 {
		fail("--rate-limit is %d, expected 0 or more requests a minute", s.RateLimit)
	}
	return problems
}

func (s Serve) checkAddresses() (problems []error) {
	for _, a := range []struct{ flag, address string }{{"--listen", s.Listen}, {"--operations-listen", s.OperationsListen}} {
		if _, _, err := net.SplitHostPort(a.address); err != nil {
			problems = append(problems, fmt.Errorf("%s %q is no address: expected host:port, such as 127.0.0.1:8080", a.flag, a.address))
		}
	}
	if s.Listen == s.OperationsListen && !strings.HasSuffix(s.Listen, ":0") {
		problems = append(problems, errors.New("--listen and --operations-listen are the same address: metrics and probes need one of their own"))
	}
	for _, o := range s.CORSOrigins {
		if u, err := url.Parse(o); o != "*" && (err != nil || u.Scheme == "" || u.Host == "" || u.Path != "") {
			problems = append(problems, fmt.Errorf("--cors-origins: %q is no origin: expected scheme://host[:port], or *", o))
		}
	}
	return problems
}
