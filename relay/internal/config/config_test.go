package config_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/commandline"
	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/internal/config"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

const (
	canary        = "c4n4ryc4n4ry"
	verifyingKey  = "../../groth16/testdata/verification_key.json"
	complianceKey = "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a" // RFC 7748 §6.1, Alice's
)

// file writes content to a new file and returns its path.
func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(folder(t), "file")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// folder makes a directory. Its path does not contain the test's name, because commas
// in it would separate the values of a flag.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "config")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // the machine clears the rest
	return dir
}

// flags are the required flags of a relay, then the others; a later flag of the same name wins.
func flags(t *testing.T, others ...string) []string {
	t.Helper()
	needed := []string{
		"--database-url-file=" + file(t, "postgres://relay:"+canary+"@db.example:5432/relay\n"),
		"--rpc-url=http://127.0.0.1:8899",
		"--verifying-key=" + verifyingKey,
		"--compliance-public-key=" + complianceKey,
	}
	// A second value would add a payer and not replace this one.
	if !slices.ContainsFunc(others, func(f string) bool { return strings.HasPrefix(f, "--fee-payer-key-file=") }) {
		needed = append(needed, "--fee-payer-key-file="+file(t, "["+canary+"]"))
	}
	return append(needed, others...)
}

// folderWithoutKeys makes a directory like a Kubernetes volume that has no key yet.
func folderWithoutKeys(t *testing.T) string {
	t.Helper()
	dir := folder(t)
	if err := os.WriteFile(filepath.Join(dir, "..data"), []byte(canary), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// parse reads the flags as relay serve does, malformed ones included.
func parse(t *testing.T, args []string) config.Serve {
	t.Helper()
	var s config.Serve
	malformed := commandline.NewMalformed()
	parser, err := kong.New(&s, malformed.Options()...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, err := parser.Parse(args)
	if err != nil {
		t.Fatalf("kong refuses %d flags: %v", len(args), err)
	}
	s.EarlierProblems = malformed.Of(ctx.Flags())
	return s
}

func TestLoad(t *testing.T) {
	t.Parallel()
	rpcFile := file(t, "https://rpc.example/?api-key="+canary+"\n")
	keyFile := file(t, complianceKey+"\n")
	program := solana.MustPublicKeyFromBase58("3LXJBnZqS85UumKKw98SjKZFhtBhExiBXkdEDL1doWWA")
	tests := map[string]struct {
		args []string
		want any
		got  func(*config.Config) any
	}{
		"the essential settings are enough": {
			want: "postgres://relay:" + canary + "@db.example:5432/relay",
			got:  func(c *config.Config) any { return c.DatabaseURL.Reveal() },
		},
		"a plain RPC URL is read": {
			want: "http://127.0.0.1:8899",
			got:  func(c *config.Config) any { return c.Endpoints[0].URL.Reveal() },
		},
		"an RPC URL with credentials is read from its file": {
			args: []string{"--rpc-url=", "--rpc-url-file=" + rpcFile},
			want: "https://rpc.example/?api-key=" + canary,
			got:  func(c *config.Config) any { return c.Endpoints[0].URL.Reveal() },
		},
		"one endpoint has a name and every role": {
			want: []string{"rpc", "read", "submit", "archive"},
			got:  func(c *config.Config) any { return append([]string{c.Endpoints[0].Name}, c.Endpoints[0].Roles...) },
		},
		"several fee payers may be given, also a directory": {
			args: []string{"--fee-payer-key-file=" + file(t, "[1]") + "," + filepath.Dir(file(t, "[2]"))},
			want: 2,
			got:  func(c *config.Config) any { return len(c.FeePayerKeyFile) },
		},
		"only transfers are capped by default": {
			want: []uint64{0, 0, uint64(contract.DefaultSpendCapTransfersDay)},
			got:  func(c *config.Config) any { return []uint64{c.SpendCapHour, c.SpendCapDay, c.SpendCapTransfersDay} },
		},
		"0 disables the cap on transfers": {
			args: []string{"--spend-cap-transfers-day=0"},
			want: uint64(0),
			got:  func(c *config.Config) any { return c.SpendCapTransfersDay },
		},
		"caps are lamports": {
			args: []string{"--spend-cap-hour=1786760", "--spend-cap-day=2000000000", "--spend-cap-transfers-day=1000000000"},
			want: []uint64{1786760, 2000000000, 1000000000},
			got:  func(c *config.Config) any { return []uint64{c.SpendCapHour, c.SpendCapDay, c.SpendCapTransfersDay} },
		},
		"finished submissions are kept for a week by default": {
			want: 7 * 24 * time.Hour,
			got:  func(c *config.Config) any { return c.Retention },
		},
		"the root history is the profile's by default": {
			want: 100,
			got:  func(c *config.Config) any { return c.Profile.RootHistory },
		},
		"another root history size replaces the profile's": {
			args: []string{"--root-history-size=4000"},
			want: 4000,
			got:  func(c *config.Config) any { return c.Profile.RootHistory },
		},
		"the compliance key is read from its file": {
			args: []string{"--compliance-public-key=", "--compliance-public-key-file=" + keyFile},
			want: byte(0x85),
			got:  func(c *config.Config) any { return c.CompliancePublicKey[0] },
		},
		"the profile is the public deployment's by default": {
			want: "shield-pool-v1",
			got:  func(c *config.Config) any { return c.Profile.Name },
		},
		"a program id replaces the profile's": {
			args: []string{"--program-id=" + program.String()},
			want: program,
			got:  func(c *config.Config) any { return c.Profile.ProgramID },
		},
		"a profile is read from its file, and flags replace its keys": {
			args: []string{"--profile-file=" + file(t, "base: development\nname: mine\ntags: {transact: 7}\nrootHistory: 64\nallowOffCurveRecipient: true"), "--root-history-size=128"},
			want: []any{"mine", uint8(7), 128, true},
			got: func(c *config.Config) any {
				return []any{c.Profile.Name, c.Profile.Tags.Transact, c.Profile.RootHistory, c.Profile.AllowOffCurveRecipient}
			},
		},
		"mints replace the profile's": {
			args: []string{"--mint=" + program.String() + "=" + strings.Repeat("0", 63) + "1," + solana.WrappedSol.String() + "=" + strings.Repeat("0", 63) + "2"},
			want: []shieldpool.Mint{{Address: program, Field: [32]byte{31: 1}}, {Address: solana.WrappedSol, Field: [32]byte{31: 2}}},
			got:  func(c *config.Config) any { return c.Profile.Mints },
		},
		"without a genesis hash any chain is accepted": {
			want: true,
			got:  func(c *config.Config) any { return c.Genesis.IsZero() },
		},
		"a genesis hash is parsed": {
			args: []string{"--genesis-hash=" + shieldpool.DevelopmentGenesisHash.String()},
			want: shieldpool.DevelopmentGenesisHash,
			got:  func(c *config.Config) any { return c.Genesis },
		},
		"sign-in messages are the profile's by default": {
			want: []string{shieldpool.DefaultSignInMessage},
			got:  func(c *config.Config) any { return c.Profile.SignInMessages },
		},
		"several sign-in messages may contain commas and line breaks": {
			args: []string{"--sign-in-messages=One, two,\nthree", "--sign-in-messages=Four"},
			want: []string{"One, two,\nthree", "Four"},
			got:  func(c *config.Config) any { return c.Profile.SignInMessages },
		},
		"several messages are read from a YAML file": {
			args: []string{"--sign-in-messages-file=" + file(t, "- |-\n  One,\n\n  two\n- \"Four: 5\"\n")},
			want: []string{"One,\n\ntwo", "Four: 5"},
			got:  func(c *config.Config) any { return c.Profile.SignInMessages },
		},
		"several messages are read from a JSON file": {
			args: []string{"--sign-in-messages-file=" + file(t, "[\"One,\\n\\ntwo\",\n\t\"http:\\/\\/pool.example\"]")},
			want: []string{"One,\n\ntwo", "http://pool.example"},
			got:  func(c *config.Config) any { return c.Profile.SignInMessages },
		},
		"off-curve recipients are allowed when enabled": {
			args: []string{"--allow-off-curve-recipient"},
			want: true,
			got:  func(c *config.Config) any { return c.Profile.AllowOffCurveRecipient },
		},
		"several origins may be given": {
			args: []string{"--cors-origins=https://a.example,http://localhost:3000"},
			want: []string{"https://a.example", "http://localhost:3000"},
			got:  func(c *config.Config) any { return c.CORSOrigins },
		},
		"waits are durations": {
			args: []string{"--wait=1m30s", "--wait-max=2m"},
			want: 90 * time.Second,
			got:  func(c *config.Config) any { return c.Wait },
		},
		"the longest wait is the one for which proxies are set up": {
			want: contract.WaitMax,
			got:  func(c *config.Config) any { return c.WaitMax },
		},
		"swaps are off without a router URL, whatever the other settings": {
			args: []string{"--router-program=" + canary, "--swap-concurrency=0"},
			want: true,
			got:  func(c *config.Config) any { return c.Swaps == nil },
		},
		"a router's URL turns swaps on, with Jupiter's program": {
			args: []string{"--router-url=https://api.jup.ag/swap/v1"},
			want: []string{"https://api.jup.ag/swap/v1", "", "JUP6LkbZbjS1jKKwapdHNy74zcZ3tLUZoi5QNyVTaV4"},
			got: func(c *config.Config) any {
				return []string{c.Swaps.Routers[0].URL.Reveal(), c.Swaps.Routers[0].APIKey.Reveal(), c.Swaps.Program.String()}
			},
		},
		"a router's URL and key are read from their files": {
			args: []string{"--router-url-file=" + file(t, "https://router.example/"+canary+"/v1?k=1\n"), "--router-api-key-file=" + file(t, "\t"+canary+"\n"), "--router-program=" + program.String()},
			want: []string{"https://router.example/" + canary + "/v1?k=1", canary, program.String()},
			got: func(c *config.Config) any {
				return []string{c.Swaps.Routers[0].URL.Reveal(), c.Swaps.Routers[0].APIKey.Reveal(), c.Swaps.Program.String()}
			},
		},
		"fallback routers follow the preferred one, in their order": {
			args: []string{"--router-url=https://router.example/v2", "--router-requests-per-second=7", "--router-fallbacks-file=" + file(t, "- {name: second, urlFile: "+file(t, "https://two.example/"+canary)+", apiKeyFile: "+file(t, canary+"\n")+", requestsPerSecond: 3}\n- {name: third, url: 'http://three.example/v1'}\n")},
			want: []string{"preferred https://router.example/v2  7", "second https://two.example/" + canary + " " + canary + " 3", "third http://three.example/v1  0"},
			got: func(c *config.Config) any {
				var routers []string
				for _, r := range c.Swaps.Routers {
					routers = append(routers, fmt.Sprintf("%s %s %s %d", r.Name, r.URL.Reveal(), r.APIKey.Reveal(), r.RequestsPerSecond))
				}
				return routers
			},
		},
		"swaps have their defaults": {
			args: []string{"--router-url=http://127.0.0.1:1"},
			want: []any{3 * time.Second, 0, 50, 64},
			got: func(c *config.Config) any {
				return []any{c.Router.Timeout, c.Router.RequestsPerSecond, c.SwapSlippageBps, c.SwapConcurrency}
			},
		},
		"the limits of the swap settings are valid": {
			args: []string{"--router-url=http://127.0.0.1:1", "--router-timeout=30s", "--router-requests-per-second=100000", "--swap-slippage-bps=10000", "--swap-concurrency=1"},
			want: []any{30 * time.Second, 100_000, 10_000, 1},
			got: func(c *config.Config) any {
				return []any{c.Router.Timeout, c.Router.RequestsPerSecond, c.SwapSlippageBps, c.SwapConcurrency}
			},
		},
		"no lookup table is used by default": {
			want: true,
			got:  func(c *config.Config) any { return c.LookupTable.IsZero() },
		},
		"a lookup table is parsed": {
			args: []string{"--lookup-table=" + program.String()},
			want: program,
			got:  func(c *config.Config) any { return c.LookupTable },
		},
		"transactions are legacy by default, which the operator leaves out": {
			want: config.FormatLegacy,
			got:  func(c *config.Config) any { return c.TransactionFormat },
		},
		"version 1 may be taken where it is needed": {
			args: []string{"--transaction-format=auto"},
			want: config.FormatAuto,
			got:  func(c *config.Config) any { return c.TransactionFormat },
		},
		"two servers may both take a free port": {
			args: []string{"--listen=127.0.0.1:0", "--operations-listen=127.0.0.1:0"},
			want: "127.0.0.1:0",
			got:  func(c *config.Config) any { return c.OperationsListen },
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := parse(t, flags(t, tc.args...)).Load()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, tc.got(c)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestLoadDoesNotChangeBuiltInProfile(t *testing.T) {
	t.Parallel()
	if _, err := parse(t, flags(t, "--allow-off-curve-recipient", "--sign-in-messages=Other")).Load(); err != nil {
		t.Fatal(err)
	}
	if p := shieldpool.ShieldPoolV1(); p.AllowOffCurveRecipient || p.SignInMessages[0] != shieldpool.DefaultSignInMessage {
		t.Error("Load changed the built-in profile")
	}
}

// Each value except numbers contains the canary, as if two settings had been confused.
func TestProblemsAreListedWithoutValues(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(folder(t), canary)
	fallbacks := func(routers ...string) []string {
		return []string{"--router-url=https://router.example", "--router-fallbacks-file=" + file(t, "- "+strings.Join(routers, "\n- "))}
	}
	tests := map[string]struct {
		args []string
		flag string
		want string // a part of the message
	}{
		"an address without a port":                             {[]string{"--listen=" + canary}, "--listen ($RELAYPOOL_LISTEN)", "expected host:port, such as 127.0.0.1:8080, received 12 characters"},
		"an invalid port":                                       {[]string{"--operations-listen=127.0.0.1:70000"}, "--operations-listen", "expected host:port"},
		"one address for both servers":                          {[]string{"--operations-listen=127.0.0.1:8080"}, "--operations-listen", "the same address as --listen"},
		"no database":                                           {[]string{"--database-url-file="}, "--database-url-file", "is missing"},
		"a database URL instead of its file":                    {[]string{"--database-url-file=postgres://u:" + canary + "@h/d"}, "--database-url-file", "no such file or directory; it takes a path"},
		"an empty database file":                                {[]string{"--database-url-file=" + file(t, "\n")}, "--database-url-file", "is empty"},
		"a database file without a Postgres URL":                {[]string{"--database-url-file=" + file(t, "mysql://"+canary+"@h:port/d")}, "--database-url-file", "not a Postgres URL: expected postgres://"},
		"a folder for a file":                                   {[]string{"--database-url-file=" + t.TempDir()}, "--database-url-file", "is a directory"},
		"too few connections":                                   {[]string{"--database-max-connections=3"}, "--database-max-connections", "expected at least 4, received 3"},
		"connections beyond 32 bits":                            {[]string{"--database-max-connections=99999999999"}, "--database-max-connections", "expected a whole number"},
		"no RPC endpoint":                                       {[]string{"--rpc-url="}, "--rpc-url", "is missing"},
		"two RPC endpoints":                                     {[]string{"--rpc-url-file=" + missing}, "--rpc-url", "2 of this setting"},
		"an RPC endpoint and a list":                            {[]string{"--rpc-endpoints-file=" + missing}, "--rpc-url", "give one"},
		"an RPC endpoint over WebSocket":                        {[]string{"--rpc-url=ws://" + canary}, "--rpc-url", "not the URL of an endpoint: expected http:// or https://"},
		"an RPC URL with a password":                            {[]string{"--rpc-url=https://u:" + canary + "@rpc.example"}, "--rpc-url", "name that with --rpc-url-file"},
		"an RPC URL with a key in its query":                    {[]string{"--rpc-url=https://rpc.example/?key=" + canary}, "--rpc-url", "name that with --rpc-url-file"},
		"an RPC file that is not there":                         {[]string{"--rpc-url=", "--rpc-url-file=" + missing}, "--rpc-url-file", "no such file"},
		"an RPC file without a URL":                             {[]string{"--rpc-url=", "--rpc-url-file=" + file(t, canary)}, "--rpc-url-file", "not the URL of an endpoint"},
		"an invalid genesis hash":                               {[]string{"--genesis-hash=" + canary}, "--genesis-hash", "expected 32 bytes in base58, received 12 characters"},
		"an unknown profile":                                    {[]string{"--profile=" + canary}, "--profile", "expected shield-pool-v1 or development"},
		"an invalid program id":                                 {[]string{"--program-id=" + canary}, "--program-id", "expected 32 bytes in base58"},
		"no verifying key":                                      {[]string{"--verifying-key="}, "--verifying-key", "is missing"},
		"a verifying key that is not JSON":                      {[]string{"--verifying-key=" + file(t, canary)}, "--verifying-key", "want the JSON of snarkjs"},
		"an unknown encoding of proof A":                        {[]string{"--proof-a=" + canary}, "--proof-a", "expected auto, plain or negated"},
		"no fee payer":                                          {[]string{"--fee-payer-key-file="}, "--fee-payer-key-file", "make a key with relay keygen"},
		"a fee payer's key instead of its file":                 {[]string{"--fee-payer-key-file=[" + canary + "]"}, "--fee-payer-key-file", "expected a path, not the content"},
		"one of two fee payers without a file":                  {[]string{"--fee-payer-key-file=" + file(t, "[1]") + "," + missing}, "--fee-payer-key-file", "no such file"},
		"a directory without a key":                             {[]string{"--fee-payer-key-file=" + folderWithoutKeys(t)}, "--fee-payer-key-file", "has no file, except those whose names begin with a dot"},
		"a whole key instead of its file":                       {[]string{"--fee-payer-key-file=[1,2,3," + canary + "]"}, "--fee-payer-key-file", "expected a path, not the content"},
		"an hour cap below the cost of a Transact":              {[]string{"--spend-cap-hour=1786759"}, "--spend-cap-hour", "at least the 1786760 lamports that one Transact costs, received 1786759"},
		"a day cap below the cost of a Transact":                {[]string{"--spend-cap-day=1"}, "--spend-cap-day", "expected 0, for no cap"},
		"a transfer cap below the cost of a Transact":           {[]string{"--spend-cap-transfers-day=5"}, "--spend-cap-transfers-day", "expected 0, for no cap"},
		"a cap in another unit":                                 {[]string{"--spend-cap-day=" + canary}, "--spend-cap-day", "expected a whole number of 0 or more"},
		"a retention below the replay time of idempotency keys": {[]string{"--retention=23h"}, "--retention", "expected 24h0m0s or more"},
		"a root history of one root":                            {[]string{"--root-history-size=1"}, "--root-history-size", "expected 2 to 300000 roots"},
		"an overlong path":                                      {[]string{"--fee-payer-key-file=" + strings.Repeat(canary, 999)}, "--fee-payer-key-file", "file name too long"},
		"a negative balance":                                    {[]string{"--fee-payer-min-balance=-1"}, "--fee-payer-min-balance", "expected a whole number of 0 or more, received 2 characters"},
		"a floor above the cap":                                 {[]string{"--priority-fee-floor=2000000"}, "--priority-fee-floor", "expected at most --priority-fee-cap ($RELAYPOOL_PRIORITY_FEE_CAP), which is 1000000, received 2000000"},
		"a cap that is not a number":                            {[]string{"--priority-fee-cap=" + canary}, "--priority-fee-cap", "expected a whole number of 0 or more, received 12 characters"},
		"a percentile above 100":                                {[]string{"--priority-fee-percentile=101"}, "--priority-fee-percentile", "expected 0 to 100, received 101"},
		"a router over WebSocket":                               {[]string{"--router-url=wss://" + canary}, "--router-url ($RELAYPOOL_ROUTER_URL)", "not the URL of a router: expected http:// or https:// and a host"},
		"a router without a host":                               {[]string{"--router-url=https:///" + canary}, "--router-url", "21 characters that are not the URL of a router"},
		"a router URL with a password":                          {[]string{"--router-url=https://u:" + canary + "@router.example"}, "--router-url", "name that with --router-url-file"},
		"a router URL with a key in its query":                  {[]string{"--router-url=https://router.example/?key=" + canary}, "--router-url", "name that with --router-url-file"},
		"two router URLs":                                       {[]string{"--router-url=https://router.example", "--router-url-file=" + missing}, "--router-url", "and so is --router-url-file ($RELAYPOOL_ROUTER_URL_FILE): give one"},
		"a router file that is not there":                       {[]string{"--router-url-file=" + missing}, "--router-url-file", "no such file"},
		"a router file without a URL":                           {[]string{"--router-url-file=" + file(t, canary)}, "--router-url-file", "not the URL of a router"},
		"a key without a router":                                {[]string{"--router-api-key-file=" + missing}, "--router-api-key-file", "is set, but no router is: give its URL with --router-url"},
		"a key instead of its file":                             {[]string{"--router-url=https://router.example", "--router-api-key-file=" + canary}, "--router-api-key-file", "no such file or directory; it takes a path"},
		"a key of two lines":                                    {[]string{"--router-url=https://router.example", "--router-api-key-file=" + file(t, canary+"\r\nx: "+canary)}, "--router-api-key-file", "29 bytes is not an API key"},
		"a key that does not fit a header":                      {[]string{"--router-url=https://router.example", "--router-api-key-file=" + file(t, "é"+canary)}, "--router-api-key-file", "not an API key"},
		"an empty key":                                          {[]string{"--router-url=https://router.example", "--router-api-key-file=" + file(t, "")}, "--router-api-key-file", "is empty"},
		"fallback routers without a preferred one":              {[]string{"--router-fallbacks-file=" + missing}, "--router-fallbacks-file", "is set, but no router is: give its URL with --router-url"},
		"a fallback router without a URL":                       {fallbacks("{name: b}"), "--router-fallbacks-file", "router 1 of 1: url is missing"},
		"a fallback router of another kind of URL":              {fallbacks("{name: b, url: 'ws://" + canary + "'}"), "--router-fallbacks-file", "not the URL of the router"},
		"a fallback router named as the preferred one":          {fallbacks("{name: preferred, url: 'http://" + canary + "'}"), "--router-fallbacks-file", "name is that of another router, or preferred"},
		"two fallback routers of one name":                      {fallbacks("{name: b, url: 'http://h'}", "{name: b, url: 'http://h'}"), "--router-fallbacks-file", "router 2 of 2: name is that of another router"},
		"too many fallback routers":                             {fallbacks("{}", "{}", "{}", "{}", "{}"), "--router-fallbacks-file", "lists 5 routers: expected 1 to 4"},
		"a fallback router's key of two lines":                  {fallbacks("{name: b, url: 'http://h', apiKeyFile: " + file(t, canary+"\n"+canary) + "}"), "--router-fallbacks-file", "25 bytes is not an API key"},
		"a fallback router's rate that is a fraction":           {fallbacks("{name: b, url: 'http://h', requestsPerSecond: 1.5}"), "--router-fallbacks-file", "expected a whole number"},
		"a fallback router with roles":                          {fallbacks("{name: b, url: 'http://h', roles: [read]}"), "--router-fallbacks-file", "a key of 5 characters is not known: expected name, url, urlFile, apiKeyFile, requestsPerSecond"},
		"an invalid router program":                             {[]string{"--router-url=https://router.example", "--router-program=" + canary}, "--router-program", "expected 32 bytes in base58, received 12 characters"},
		"a router timeout that is too short":                    {[]string{"--router-url=https://router.example", "--router-timeout=99ms"}, "--router-timeout", "expected 100ms to 30s, received 99ms"},
		"a router timeout that is too long":                     {[]string{"--router-url=https://router.example", "--router-timeout=31s"}, "--router-timeout", "expected 100ms to 30s, received 31s"},
		"a negative request rate of the router":                 {[]string{"--router-url=https://router.example", "--router-requests-per-second=-1"}, "--router-requests-per-second", "expected 0, for no limit, to 100000, received -1"},
		"slippage above 100 percent":                            {[]string{"--router-url=https://router.example", "--swap-slippage-bps=10001"}, "--swap-slippage-bps", "expected 1 to 10000 hundredths of a percent, received 10001"},
		"a slippage of zero":                                    {[]string{"--router-url=https://router.example", "--swap-slippage-bps=0"}, "--swap-slippage-bps", "expected 1 to 10000"},
		"a negative slippage":                                   {[]string{"--router-url=https://router.example", "--swap-slippage-bps=-1"}, "--swap-slippage-bps", "expected 1 to 10000"},
		"a swap concurrency of zero":                            {[]string{"--router-url=https://router.example", "--swap-concurrency=0"}, "--swap-concurrency", "expected 1 to 10000, received 0"},
		"an unknown format of transactions":                     {[]string{"--transaction-format=" + canary}, "--transaction-format", "expected legacy, auto or v1"},
		"version 1 for a program that refuses it":               {[]string{"--profile-file=" + file(t, "base: development\nrefusesV1: true"), "--transaction-format=auto"}, "--transaction-format", "the program refuses version 1: expected legacy"},
		"an invalid lookup table":                               {[]string{"--lookup-table=" + canary}, "--lookup-table", "expected 32 bytes in base58, received 12 characters"},
		"the zero address for a lookup table":                   {[]string{"--lookup-table=11111111111111111111111111111111"}, "--lookup-table", "expected 32 bytes in base58"},
		"no compliance key":                                     {[]string{"--compliance-public-key="}, "--compliance-public-key", "make a key pair with relay compliance keygen"},
		"two compliance keys":                                   {[]string{"--compliance-public-key-file=" + missing}, "--compliance-public-key", "give one"},
		"an invalid compliance key":                             {[]string{"--compliance-public-key=" + canary}, "--compliance-public-key", "64 hexadecimal digits"},
		"a compliance key that seals nothing":                   {[]string{"--compliance-public-key=" + strings.Repeat("0", 64)}, "--compliance-public-key", "anybody could open"},
		"a compliance file without a key":                       {[]string{"--compliance-public-key=", "--compliance-public-key-file=" + file(t, canary)}, "--compliance-public-key-file", "64 hexadecimal digits"},
		"sign-in messages and a file of them":                   {[]string{"--sign-in-messages=A", "--sign-in-messages-file=" + file(t, "[B]")}, "--sign-in-messages ", "give one"},
		"sign-in messages that are not a list":                  {[]string{"--sign-in-messages-file=" + file(t, "a: "+canary)}, "--sign-in-messages-file", "expected a YAML or JSON list of texts"},
		"a file without a sign-in message":                      {[]string{"--sign-in-messages-file=" + file(t, "[]")}, "--sign-in-messages-file", "at least one"},
		"an empty sign-in message in a file":                    {[]string{"--sign-in-messages-file=" + file(t, "- "+canary+"\n- ''\n")}, "--sign-in-messages-file", "message 2 of 2 is empty"},
		"a file of sign-in messages that is not there":          {[]string{"--sign-in-messages-file=" + missing}, "--sign-in-messages-file", "cannot be read"},
		"an empty sign-in message":                              {[]string{"--sign-in-messages="}, "--sign-in-messages", "is empty"},
		"a concurrency of zero":                                 {[]string{"--concurrency=0"}, "--concurrency", "expected 1 to 10000, received 0"},
		"a concurrency that is not a number":                    {[]string{"--concurrency=" + canary}, "--concurrency", "expected a whole number, received 12 characters"},
		"a wait above the maximum":                              {[]string{"--wait=2m"}, "--wait ($RELAYPOOL_WAIT)", "which is 1m0s, received 2m0s"},
		"a wait without a unit":                                 {[]string{"--wait=30"}, "--wait ($RELAYPOOL_WAIT)", "expected a duration such as 30s"},
		"a maximum wait that is too long":                       {[]string{"--wait-max=1h"}, "--wait-max", "expected 1s to 10m0s, received 1h0m0s"},
		"a negative rate limit":                                 {[]string{"--rate-limit=-1"}, "--rate-limit", "expected 0, for no limit, or more"},
		"a header with a space":                                 {[]string{"--client-ip-header=X " + canary}, "--client-ip-header", "expected a header's name"},
		"an origin with a path":                                 {[]string{"--cors-origins=*,https://a.example/" + canary}, "--cors-origins", "in origin 2 of 2"},
		"a switch that is neither on nor off":                   {[]string{"--allow-off-curve-recipient=" + canary}, "--allow-off-curve-recipient", "expected true or false, received 12 characters"},
		"an unknown log level":                                  {[]string{"--log-level=" + canary}, "--log-level", "expected debug, info, warn or error"},
		"an unknown log format":                                 {[]string{"--log-format=" + canary}, "--log-format", "expected auto, json or text"},
		"a profile file that is not there":                      {[]string{"--profile-file=" + missing}, "--profile-file", "no such file"},
		"a profile of an unknown base":                          {[]string{"--profile-file=" + file(t, "base: "+canary)}, "--profile-file", "base (line 1): expected shield-pool-v1 or development, received 12 characters"},
		"a profile with an unknown key":                         {[]string{"--profile-file=" + file(t, "base: development\n"+canary+": 1")}, "--profile-file", "a key of 12 characters is not known"},
		"a mint without its field":                              {[]string{"--mint=" + canary}, "--mint", "expected address=field"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := parse(t, flags(t, tc.args...)).Load()
			var problems commandline.Problems
			if !errors.As(err, &problems) || len(problems) != 1 {
				t.Fatalf("want one problem, received %v", err)
			}
			if got := problems[0].Error(); !strings.HasPrefix(got, tc.flag) || !strings.Contains(got, tc.want) {
				t.Errorf("want %s … %s …, received %s", tc.flag, tc.want, got)
			}
			if strings.Contains(err.Error(), canary) {
				t.Errorf("the error contains the value: %v", err)
			}
		})
	}
	t.Run("all at once", func(t *testing.T) {
		t.Parallel()
		var args []string
		seen := map[string]bool{}
		for _, key := range slices.Sorted(maps.Keys(tests)) {
			tc := tests[key]
			// A flag has one value, and a file beside a value is one problem with both.
			name, _, _ := strings.Cut(tc.args[0], "=")
			if len(tc.args) == 1 && !seen[name] && !strings.HasSuffix(name, "-file") && name != "--operations-listen" && name != "--wait" {
				seen[name] = true
				args = append(args, tc.args[0])
			}
		}
		_, err := parse(t, args).Load()
		for name := range seen {
			if !strings.Contains(err.Error(), name+" ($") {
				t.Errorf("%s is not among the problems:\n%v", name, err)
			}
		}
		for _, missing := range []string{"--database-url-file", "--fee-payer-key-file"} {
			if !strings.Contains(err.Error(), "\n  "+missing) {
				t.Errorf("%s is not among the problems:\n%v", missing, err)
			}
		}
		if strings.Contains(err.Error(), canary) {
			t.Errorf("the error contains a value:\n%v", err)
		}
	})
}

func TestFlagOverridesVariable(t *testing.T) {
	t.Setenv(contract.EnvConcurrency, "7")
	t.Setenv(contract.EnvRateLimit, "9")
	c, err := parse(t, flags(t, "--rate-limit=11")).Load()
	if err != nil {
		t.Fatal(err)
	}
	if c.Concurrency != 7 || c.RateLimit != 11 {
		t.Errorf("concurrency %d and rate limit %d, want 7 from the variable and 11 from the flag", c.Concurrency, c.RateLimit)
	}
}

func TestMalformedVariableIsListedWithoutItsValue(t *testing.T) {
	t.Setenv(contract.EnvWait, canary)
	t.Setenv(contract.EnvOffCurveRecipient, canary)
	_, err := parse(t, flags(t)).Load()
	var problems commandline.Problems
	if !errors.As(err, &problems) || len(problems) != 2 || strings.Contains(err.Error(), canary) {
		t.Errorf("want two problems without their values, received %v", err)
	}
}

func TestFlagsVariablesAndContractAgree(t *testing.T) {
	t.Parallel()
	parser, err := kong.New(&config.Serve{}, commandline.NewMalformed().Options()...)
	if err != nil {
		t.Fatal(err)
	}
	var variables []string
	for _, f := range parser.Model.Flags {
		if f.Name == "help" {
			continue
		}
		want := contract.VariablePrefix + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		if diff := cmp.Diff([]string{want}, f.Envs); diff != "" {
			t.Errorf("variable of --%s (-want +got):\n%s", f.Name, diff)
		}
		if !strings.HasSuffix(f.Help, ".") {
			t.Errorf("--%s: the help is not a sentence: %q", f.Name, f.Help)
		}
		if f.PlaceHolder == "" && !f.IsBool() {
			t.Errorf("--%s: no placeholder says what kind of value it takes", f.Name)
		}
		variables = append(variables, f.Envs...)
	}
	slices.Sort(variables)
	if diff := cmp.Diff(slices.Sorted(slices.Values(contract.EnvironmentVariables())), variables); diff != "" {
		t.Errorf("variables (-contract +flags):\n%s", diff)
	}
}

func TestAdmin(t *testing.T) {
	t.Parallel()
	url, err := config.Admin{
		Database: config.Database{URLFile: file(t, "postgres://h/d")},
		Logging:  config.Logging{Level: "info", Format: "json"},
	}.Load()
	if err != nil || url.Reveal() != "postgres://h/d" {
		t.Errorf("error is %v, want the URL in the file", err)
	}
	_, err = config.Admin{EarlierProblems: []error{errors.New("earlier")}}.Load()
	var problems commandline.Problems
	if !errors.As(err, &problems) || len(problems) != 4 {
		t.Errorf("want four problems (earlier, file, level, format), received %v", err)
	}
}
