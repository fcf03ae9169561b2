package config

import (
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/relaypool/relaypool/relay/commandline"
	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

const (
	maxConcurrency = 10_000
	// minConnections: one connection listens for notifications, the queue needs two, and clients'
	// requests need one.
	minConnections = 4
	// maxWait is the largest value of --wait-max. Proxies between client and relay usually close the
	// connection of a request that waits longer for its outcome.
	maxWait = 10 * time.Minute
	maxPort = 1<<16 - 1
	// An idempotency key replays its submission's outcome for minRetention, so finished
	// submissions must be kept at least that long.
	minRetention = 24 * time.Hour
)

// flagProblem returns the problem of a flag that has no environment variable.
func flagProblem(flag, format string, args ...any) error {
	return fmt.Errorf("--%s: %w", flag, fmt.Errorf(format, args...))
}

func (s Serve) checkNumbers() (problems []error) {
	addProblem := func(flag, format string, args ...any) {
		problems = append(problems, commandline.Problem(flag, format, args...))
	}
	if s.PriorityFeeFloor > s.PriorityFeeCap {
		addProblem("priority-fee-floor", "expected at most %s, which is %d, received %d", commandline.Setting("priority-fee-cap"), s.PriorityFeeCap, s.PriorityFeeFloor)
	}
	if s.PriorityFeePercentile < 0 || s.PriorityFeePercentile > 100 {
		addProblem("priority-fee-percentile", "expected 0 to 100, received %d", s.PriorityFeePercentile)
	}
	if s.Concurrency < 1 || s.Concurrency > maxConcurrency {
		addProblem("concurrency", "expected 1 to %d, received %d", maxConcurrency, s.Concurrency)
	}
	if s.Retention < minRetention {
		addProblem("retention", "expected %s or more, which is how long an Idempotency-Key replays an outcome, received %s", minRetention, s.Retention)
	}
	for _, c := range []struct {
		flag     string
		lamports uint64
	}{{"spend-cap-hour", s.SpendCapHour}, {"spend-cap-day", s.SpendCapDay}, {"spend-cap-transfers-day", s.SpendCapTransfersDay}} {
		if c.lamports != 0 && c.lamports < shieldpool.TransactCost {
			addProblem(c.flag, "expected 0, for no cap, or at least the %d lamports that one Transact costs, received %d", shieldpool.TransactCost, c.lamports)
		}
	}
	if s.Database.MaxConnections < minConnections {
		addProblem("database-max-connections", "expected at least %d, received %d: one listens, the queue needs two, and requests one", minConnections, s.Database.MaxConnections)
	}
	if s.WaitMax < time.Second || s.WaitMax > maxWait {
		addProblem("wait-max", "expected %s to %s, received %s", time.Second, maxWait, s.WaitMax)
	}
	if s.Wait < 0 || s.Wait > s.WaitMax {
		addProblem("wait", "expected 0s up to %s, which is %s, received %s", commandline.Setting("wait-max"), s.WaitMax, s.Wait)
	}
	if s.RateLimit < 0 {
		addProblem("rate-limit", "expected 0, for no limit, or more requests a minute, received %d", s.RateLimit)
	}
	if !slices.Contains([]string{"auto", "plain", "negated"}, s.ProofA) {
		addProblem("proof-a", "expected auto, plain or negated, received another value of %d characters", len(s.ProofA))
	}
	return problems
}

func (s Serve) checkClients() (problems []error) {
	addProblem := func(flag, format string, args ...any) {
		problems = append(problems, commandline.Problem(flag, format, args...))
	}
	for _, l := range []struct{ flag, address string }{{"listen", s.Listen}, {"operations-listen", s.OperationsListen}} {
		if !isAddress(l.address) {
			addProblem(l.flag, "expected host:port, such as 127.0.0.1:%d, received %d characters that are not", contract.APIPort, len(l.address))
		}
	}
	if s.Listen == s.OperationsListen && !strings.HasSuffix(s.Listen, ":0") {
		addProblem("operations-listen", "is the same address as %s: metrics and probes need one of their own", commandline.Setting("listen"))
	}
	for i, o := range s.CORSOrigins {
		if !isOrigin(o) {
			addProblem("cors-origins", "expected scheme://host[:port] or *, received %d characters that are not in origin %d of %d", len(o), i+1, len(s.CORSOrigins))
		}
	}
	if s.ClientIPHeader != "" && !regexp.MustCompile(`^[A-Za-z0-9-]+$`).MatchString(s.ClientIPHeader) {
		addProblem("client-ip-header", "expected a header's name of letters, digits and hyphens, received %d characters that are not", len(s.ClientIPHeader))
	}
	return problems
}

func isAddress(address string) bool {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	n, err := strconv.Atoi(port)
	return err == nil && n >= 0 && n <= maxPort
}

func isOrigin(o string) bool {
	if o == "*" {
		return true
	}
	u, err := url.Parse(o)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && o == u.Scheme+"://"+u.Host
}

func (l Logging) check() (problems []error) {
	if !slices.Contains([]string{"debug", "info", "warn", "error"}, l.Level) {
		problems = append(problems, commandline.Problem("log-level", "expected debug, info, warn or error, received another value of %d characters", len(l.Level)))
	}
	if !slices.Contains([]string{"auto", "json", "text"}, l.Format) {
		problems = append(problems, commandline.Problem("log-format", "expected auto, json or text, received another value of %d characters", len(l.Format)))
	}
	return problems
}
