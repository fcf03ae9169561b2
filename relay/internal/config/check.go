package config

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/relaypool/relaypool/relay/commandline"
	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/groth16"
	"github.com/relaypool/relaypool/relay/internal/viewingkey"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

const (
	maxConcurrency = 10_000
	// minConnections: one listens for notifications, the queue needs two, and requests one.
	minConnections = 4
	// maxWait keeps a waiting client below the usual timeout of proxies in between.
	maxWait = 10 * time.Minute
	maxPort = 1<<16 - 1
	// minRetention is how long an idempotency key replays its submission's outcome.
	minRetention = 24 * time.Hour
)

// flagProblem is a problem of a flag that has no environment variable.
func flagProblem(flag, format string, args ...any) error {
	return fmt.Errorf("--%s: %w", flag, fmt.Errorf(format, args...))
}

// readFile reads the file that a required flag names. Its errors omit the path: an operator
// who gives the content instead would find it in the log.
func readFile(flag, path, advice string) ([]byte, error) {
	if path == "" {
		return nil, commandline.Problem(flag, "is missing: %s", advice)
	}
	content, err := readContent(path)
	if err != nil {
		return nil, commandline.Problem(flag, "the file that it names %w", err)
	}
	if content == "" {
		return nil, commandline.Problem(flag, "the file that it names is empty: %s", advice)
	}
	return []byte(content), nil
}

// readContent reads a file without the white space around its content. Its errors
// continue a sentence that begins with "the file", and do not name the path.
func readContent(path string) (string, error) {
	content, err := os.ReadFile(path)
	var fault *fs.PathError
	switch {
	case errors.As(err, &fault):
		return "", fmt.Errorf("cannot be read: %w; it takes a path, not the content", fault.Err)
	case err != nil:
		return "", errors.New("cannot be read; it takes a path, not the content")
	}
	return strings.TrimSpace(string(content)), nil
}

// Load reads the database's URL from its file. No error contains any of it.
func (d Database) Load() (Secret, error) {
	const flag = "database-url-file"
	content, err := readFile(flag, d.URLFile, "write the database's URL to a file of mode 0600 and name it")
	if err != nil {
		return Secret{}, err
	}
	url := strings.TrimSpace(string(content))
	if _, err := pgconn.ParseConfig(url); err != nil { // its error can hold the password
		return Secret{}, commandline.Problem(flag, "its content of %d bytes is no Postgres URL: expected postgres://user:password@host:port/name", len(url))
	}
	return NewSecret(url), nil
}

// checkKeyFiles checks that each path has content to read. The keys themselves are read
// where they are used.
func (s Serve) checkKeyFiles() (problems []error) {
	const (
		flag   = "fee-payer-key-file"
		advice = "make a key with relay keygen, fund its address, and name its file"
	)
	if len(s.FeePayerKeyFile) == 0 {
		return []error{commandline.Problem(flag, "is missing: %s", advice)}
	}
	if strings.HasPrefix(s.FeePayerKeyFile[0], "[") { // a key in place of its file, split at its commas
		return []error{commandline.Problem(flag, "starts like a JSON array: expected a path, not the content")}
	}
	for _, path := range s.FeePayerKeyFile {
		entries, err := os.ReadDir(path)
		switch {
		case err != nil: // no directory
			if _, err := readFile(flag, path, advice); err != nil {
				problems = append(problems, err)
			}
		case !slices.ContainsFunc(entries, isKeyFile):
			problems = append(problems, commandline.Problem(flag, "a directory that it names has no file, except those whose names begin with a dot: %s", advice))
		}
	}
	return problems
}

// isKeyFile returns false for the entries that a Kubernetes volume adds to its files.
func isKeyFile(e fs.DirEntry) bool { return !e.IsDir() && !strings.HasPrefix(e.Name(), ".") }

func (s Serve) genesis() (solana.Hash, error) {
	if s.GenesisHash == "" {
		return solana.Hash{}, nil
	}
	h, err := solana.HashFromBase58(s.GenesisHash)
	if err != nil {
		return solana.Hash{}, commandline.Problem("genesis-hash", "expected 32 bytes in base58, received %d characters that are not", len(s.GenesisHash))
	}
	return h, nil
}

func (s Serve) profile() (p *shieldpool.Profile, problems []error) {
	note := func(flag, format string, args ...any) {
		problems = append(problems, commandline.Problem(flag, format, args...))
	}
	p, problems = s.baseProfile()
	if len(problems) > 0 {
		p = &shieldpool.Profile{} // so that the rest is checked too
	}
	var err error
	if s.ProgramID != "" {
		if p.ProgramID, err = solana.PublicKeyFromBase58(s.ProgramID); err != nil {
			note("program-id", "expected 32 bytes in base58, received %d characters that are not", len(s.ProgramID))
		}
	}
	if s.RootHistorySize != 0 {
		if s.RootHistorySize < shieldpool.MinRootHistory || s.RootHistorySize > shieldpool.MaxRootHistory {
			note("root-history-size", "expected %d to %d roots, or 0 for the profile's, received %d", shieldpool.MinRootHistory, shieldpool.MaxRootHistory, s.RootHistorySize)
		}
		p.RootHistory = s.RootHistorySize
	}
	if len(s.Mint) > 0 {
		if p.Mints, err = shieldpool.ParseMints(s.Mint); err != nil {
			note("mint", "%w", err)
		}
	}
	// The flag can only turn this on, because a profile may turn it on too.
	p.AllowOffCurveRecipient = p.AllowOffCurveRecipient || s.AllowOffCurveRecipient
	messages, err := s.signInMessages()
	switch {
	case err != nil:
		problems = append(problems, err)
	case len(messages) > 0:
		p.SignInMessages = messages
	}
	return p, problems
}

// baseProfile returns the profile from the file, or the built-in one, before flags change
// it.
func (s Serve) baseProfile() (*shieldpool.Profile, []error) {
	const flag = "profile-file"
	if s.ProfileFile == "" {
		p, err := shieldpool.BuiltIn(s.Profile)
		if err != nil {
			return nil, []error{commandline.Problem("profile", "expected shield-pool-v1 or development, received %d characters that are neither", len(s.Profile))}
		}
		return p, nil
	}
	content, err := readFile(flag, s.ProfileFile, "write the profile to it, base first")
	if err != nil {
		return nil, []error{err}
	}
	p, err := shieldpool.ParseProfile(content)
	var found shieldpool.ProfileProblems
	switch {
	case errors.As(err, &found):
		problems := make([]error, len(found))
		for i, err := range found {
			problems[i] = commandline.Problem(flag, "%w", err)
		}
		return nil, problems
	case err != nil:
		return nil, []error{commandline.Problem(flag, "%w", err)}
	}
	return p, nil
}

func verifyingKey(path string) (*groth16.Key, error) {
	const flag = "verifying-key"
	content, err := readFile(flag, path, "name the file of snarkjs' verification_key.json for the pool's circuit")
	if err != nil {
		return nil, err
	}
	k, err := groth16.ParseKey(content)
	if err != nil {
		return nil, commandline.Problem(flag, "%w", err)
	}
	if k.NPublic() != shieldpool.SignalCount {
		return nil, commandline.Problem(flag, "the key has %d public signals, the pool's circuit has %d: name the key of that circuit", k.NPublic(), shieldpool.SignalCount)
	}
	return k, nil
}

func (s Serve) complianceKey() (key [32]byte, err error) {
	flag, text := "compliance-public-key", s.CompliancePublicKey
	switch {
	case text != "" && s.CompliancePublicKeyFile != "":
		return key, commandline.Problem(flag, "is set, and so is %s: give one", commandline.Setting("compliance-public-key-file"))
	case text == "" && s.CompliancePublicKeyFile == "":
		return key, commandline.Problem(flag, "is missing: make a pair with relay compliance keygen on the officer's own machine, and give the public half, or name its file with %s", commandline.Setting("compliance-public-key-file"))
	case text == "":
		flag = "compliance-public-key-file"
		content, err := readFile(flag, s.CompliancePublicKeyFile, "write the public key that relay compliance keygen printed to it")
		if err != nil {
			return key, err
		}
		text = strings.TrimSpace(string(content))
	}
	if key, err = viewingkey.ParsePublicKey(text); err != nil {
		return key, commandline.Problem(flag, "%w", err)
	}
	return key, nil
}

func (s Serve) checkNumbers() (problems []error) {
	note := func(flag, format string, args ...any) {
		problems = append(problems, commandline.Problem(flag, format, args...))
	}
	if s.PriorityFeeFloor > s.PriorityFeeCap {
		note("priority-fee-floor", "expected at most %s, which is %d, received %d", commandline.Setting("priority-fee-cap"), s.PriorityFeeCap, s.PriorityFeeFloor)
	}
	if s.PriorityFeePercentile < 0 || s.PriorityFeePercentile > 100 {
		note("priority-fee-percentile", "expected 0 to 100, received %d", s.PriorityFeePercentile)
	}
	if s.Concurrency < 1 || s.Concurrency > maxConcurrency {
		note("concurrency", "expected 1 to %d, received %d", maxConcurrency, s.Concurrency)
	}
	if s.Retention < minRetention {
		note("retention", "expected %s or more, which is how long an Idempotency-Key replays an outcome, received %s", minRetention, s.Retention)
	}
	for _, c := range []struct {
		flag     string
		lamports uint64
	}{{"spend-cap-hour", s.SpendCapHour}, {"spend-cap-day", s.SpendCapDay}, {"spend-cap-transfers-day", s.SpendCapTransfersDay}} {
		if c.lamports != 0 && c.lamports < shieldpool.TransactCost {
			note(c.flag, "expected 0, for no cap, or at least the %d lamports that one Transact costs, received %d", shieldpool.TransactCost, c.lamports)
		}
	}
	if s.Database.MaxConnections < minConnections {
		note("database-max-connections", "expected at least %d, received %d: one listens, the queue needs two, and requests one", minConnections, s.Database.MaxConnections)
	}
	if s.WaitMax < time.Second || s.WaitMax > maxWait {
		note("wait-max", "expected %s to %s, received %s", time.Second, maxWait, s.WaitMax)
	}
	if s.Wait < 0 || s.Wait > s.WaitMax {
		note("wait", "expected 0s up to %s, which is %s, received %s", commandline.Setting("wait-max"), s.WaitMax, s.Wait)
	}
	if s.RateLimit < 0 {
		note("rate-limit", "expected 0, for no limit, or more requests a minute, received %d", s.RateLimit)
	}
	if !slices.Contains([]string{"auto", "plain", "negated"}, s.ProofA) {
		note("proof-a", "expected auto, plain or negated, received %d characters that are none of them", len(s.ProofA))
	}
	return problems
}

func (s Serve) checkClients() (problems []error) {
	note := func(flag, format string, args ...any) {
		problems = append(problems, commandline.Problem(flag, format, args...))
	}
	for _, l := range []struct{ flag, address string }{{"listen", s.Listen}, {"operations-listen", s.OperationsListen}} {
		if !isAddress(l.address) {
			note(l.flag, "expected host:port, such as 127.0.0.1:%d, received %d characters that are not", contract.APIPort, len(l.address))
		}
	}
	if s.Listen == s.OperationsListen && !strings.HasSuffix(s.Listen, ":0") {
		note("operations-listen", "is the same address as %s: metrics and probes need one of their own", commandline.Setting("listen"))
	}
	for i, o := range s.CORSOrigins {
		if !isOrigin(o) {
			note("cors-origins", "expected scheme://host[:port] or *, received %d characters that are not in origin %d of %d", len(o), i+1, len(s.CORSOrigins))
		}
	}
	if s.ClientIPHeader != "" && !regexp.MustCompile(`^[A-Za-z0-9-]+$`).MatchString(s.ClientIPHeader) {
		note("client-ip-header", "expected a header's name of letters, digits and hyphens, received %d characters that are not", len(s.ClientIPHeader))
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
		problems = append(problems, commandline.Problem("log-level", "expected debug, info, warn or error, received %d characters that are none of them", len(l.Level)))
	}
	if !slices.Contains([]string{"auto", "json", "text"}, l.Format) {
		problems = append(problems, commandline.Problem("log-format", "expected auto, json or text, received %d characters that are none of them", len(l.Format)))
	}
	return problems
}
