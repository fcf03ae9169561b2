package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/commandline"
	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/internal/feepayer"
	"github.com/relaypool/relaypool/relay/internal/pgtest"
	"github.com/relaypool/relaypool/relay/internal/store"
	"github.com/relaypool/relaypool/relay/internal/viewingkey"
)

const (
	canary       = "c4n4ryc4n4ry"
	verifyingKey = "../../groth16/testdata/verification_key.json"
	testTimeout  = 2 * time.Minute
)

func TestMain(m *testing.M) {
	if os.Getenv(asRelay) != "" { // a test has started this program as the relay
		os.Exit(run(&environment{Context: context.Background(), in: os.Stdin, out: os.Stdout, err: os.Stderr, pace: 30 * time.Millisecond}, os.Args[1:]))
	}
	pgtest.Main(m)
}

// buffer is written by a command and read by its test.
type buffer struct {
	mu   sync.Mutex
	data bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.String()
}

// command runs one command line to its end.
func command(t *testing.T, in string, args ...string) (code int, out, stderr string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(&environment{Context: t.Context(), in: strings.NewReader(in), out: &o, err: &e}, args)
	return code, o.String(), e.String()
}

// succeed runs a command that must not fail and returns its output.
func succeed(t *testing.T, in string, args ...string) string {
	t.Helper()
	code, out, stderr := command(t, in, args...)
	if code != 0 {
		t.Fatalf("relay %s: exit code %d, want 0: %s", args[0], code, stderr)
	}
	return out
}

func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestHelpExplainsEveryFlagAndItsVariable(t *testing.T) {
	t.Parallel()
	out := succeed(t, "", "--help")
	for _, name := range contract.EnvironmentVariables() {
		flag := "--" + strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, contract.VariablePrefix), "_", "-"))
		if !strings.Contains(out, "[$"+name+"]") || !strings.Contains(out, flag) {
			t.Errorf("%s or %s is not in the help", flag, name)
		}
	}
	for _, want := range []string{
		"relay serve", "relay migrate", "relay ledger", "relay swaps", "relay sweep fund --", "relay sweep drain --", "relay sweep all --", "relay keygen <file>", "relay compliance keygen <file>", "relay compliance export",
		"relay compliance open --key=FILE", "relay version", "127.0.0.1:8080",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in the help", want)
		}
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	if got, want := succeed(t, "", "version"), "relay "+contract.Version+" ("; !strings.HasPrefix(got, want) {
		t.Errorf("received %q, want %q and the build", got, want)
	}
	var got struct{ Version, Build string }
	if err := json.Unmarshal([]byte(succeed(t, "", "version", "--json")), &got); err != nil {
		t.Fatal(err)
	}
	if got.Version != contract.Version || got.Build == "" {
		t.Errorf("received %+v, want version %s and a build", got, contract.Version)
	}
}

func TestUsageErrorsExitWithTwoAndRepeatNoSecret(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		args []string
		want string
	}{
		"no command":                       {nil, `expected one of "serve"`},
		"an unknown command":               {[]string{canary}, "an argument that is neither"},
		"a secret as an argument":          {[]string{"serve", "postgres://u:" + canary + "@h/d"}, "an argument that is neither"},
		"a secret in an unknown flag":      {[]string{"serve", "--database-url=postgres://u:" + canary + "@h/d"}, `did you mean "--database-url-file"?`},
		"a flag without its value":         {[]string{"serve", "--listen"}, "--listen"},
		"serve without settings":           {[]string{"serve"}, "the configuration has 5 problems:"},
		"a malformed number of serve":      {[]string{"serve", "--concurrency=" + canary}, "the configuration has 6 problems:"},
		"a damaged key among the problems": {[]string{"serve", "--fee-payer-key-file=" + file(t, "["+canary+"]")}, "key of 14 characters starts like a JSON array"},
		"a key instead of its file":        {[]string{"serve", "--fee-payer-key-file=[" + canary + "]"}, "expected a path, not the content"},
		"migrate without a database":       {[]string{"migrate"}, "--database-url-file ($RELAYPOOL_DATABASE_URL_FILE): is missing"},
		"migrate with a malformed number":  {[]string{"migrate", "--database-max-connections=" + canary}, "expected a whole number"},
		"swaps without a database":         {[]string{"swaps"}, "is missing"},
		"swaps all and overdue":            {[]string{"swaps", "--all", "--overdue", "--database-url-file=" + file(t, "postgres://h/d")}, "expected one of --all and --overdue"},
		"export without a database":        {[]string{"compliance", "export"}, "is missing"},
		"open without a key":               {[]string{"compliance", "open"}, "missing flags: --key"},
		"open with a key of another kind":  {[]string{"compliance", "open", "--key=" + file(t, canary)}, "want one line"},
		"open with a missing export":       {[]string{"compliance", "open", "--key=" + officerKey(t), "/nowhere/export"}, "no such file"},
		"keygen without a file":            {[]string{"keygen"}, `expected "<file>"`},
		"an unknown log format":            {[]string{"migrate", "--database-url-file=" + file(t, "postgres://h/d"), "--log-format=" + canary}, "expected auto, json or text"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, out, stderr := command(t, "", tc.args...)
			if code != commandline.ExitUsage || !strings.Contains(stderr, tc.want) || out != "" {
				t.Errorf("exit code %d, want %d and …%s…, received %s", code, commandline.ExitUsage, tc.want, stderr)
			}
			if strings.Contains(stderr, canary) {
				t.Errorf("the output repeats the value: %s", stderr)
			}
		})
	}
}

func TestKeygenWritesAKeyAndNeverOverwrites(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "payer.json")
	out := succeed(t, "", "keygen", path)
	key, err := feepayer.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(key.PublicKey().String()+"\n", out); diff != "" {
		t.Errorf("address (-of the file +printed):\n%s", diff)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v (%v), want 0600", info.Mode(), err)
	}
	code, _, stderr := command(t, "", "keygen", path)
	again, err := feepayer.ReadFile(path)
	if code != commandline.ExitFailed || !strings.Contains(stderr, "must not exist yet") || err != nil || again.PublicKey() != key.PublicKey() {
		t.Errorf("a second keygen: exit code %d and %q, want %d and the key kept (%v)", code, stderr, commandline.ExitFailed, err)
	}
}

func officerKey(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "officer")
	succeed(t, "", "compliance", "keygen", path)
	return path
}

func TestTheOfficerOpensRegisteredKeys(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	urlFile := file(t, url)
	if out := succeed(t, "", "migrate", "--database-url-file="+urlFile, "--log-level=warn"); out != "the schema is up to date\n" {
		t.Errorf("migrate prints %q", out)
	}
	officer := filepath.Join(t.TempDir(), "officer")
	public := strings.TrimSpace(succeed(t, "", "compliance", "keygen", officer))
	key := [32]byte{1, 2, 3}
	register(t, url, public, key)

	export := succeed(t, "", "compliance", "export", "--database-url-file="+urlFile)
	if strings.Contains(export, hex.EncodeToString(key[:])) || strings.Count(export, "\n") != 1 {
		t.Errorf("the export is not one sealed line: %s", export)
	}
	opened := map[string]string{
		"from standard input": succeed(t, export, "compliance", "open", "--key="+officer),
		"from a file":         succeed(t, "", "compliance", "open", "--key="+officer, file(t, export)),
	}
	for name, out := range opened {
		if !strings.Contains(out, `"viewing_key":"`+hex.EncodeToString(key[:])) {
			t.Errorf("%s: the key is not in %s", name, out)
		}
	}
	code, out, stderr := command(t, export, "compliance", "open", "--key="+officerKey(t))
	if code != 0 || out != "" || !strings.Contains(stderr, "opened 0; sealed to another key 1; damaged 0") {
		t.Errorf("another officer's key: exit code %d, %q and %q, want nothing opened", code, out, stderr)
	}
	code, _, stderr = command(t, export+"damaged\n", "compliance", "open", "--key="+officer)
	if code != commandline.ExitFailed || !strings.Contains(stderr, "opened 1; sealed to another key 0; damaged 1") || !strings.Contains(stderr, "line 2") {
		t.Errorf("a damaged line: exit code %d and %q, want %d, the rest opened and the line named", code, stderr, commandline.ExitFailed)
	}
}

// register stores a viewing key sealed to the officer, as the relay does.
func register(t *testing.T, url, public string, key [32]byte) {
	t.Helper()
	pool, err := store.Open(t.Context(), url, store.TLSFiles{}, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	s, err := store.New(pool)
	if err != nil {
		t.Fatal(err)
	}
	seal, err := viewingkey.ParsePublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := viewingkey.New(viewingkey.Options{Store: s, Messages: []string{"Sign in"}, CompliancePublicKey: seal, Random: rand.Reader, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	wallet := solana.NewWallet().PrivateKey
	signature, err := wallet.Sign([]byte("Sign in"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Register(t.Context(), viewingkey.Registration{
		UserPubkey: wallet.PublicKey().String(), ViewingKeyHex: hex.EncodeToString(key[:]), Signature: signature.String(),
	}); err != nil {
		t.Fatal(err)
	}
}

func TestUnreachableDatabaseExitsWithOne(t *testing.T) {
	t.Parallel()
	url := file(t, "postgres://relay:"+canary+"@127.0.0.1:1/relay?connect_timeout=2")
	code, _, stderr := command(t, "", "migrate", "--database-url-file="+url)
	if code != commandline.ExitFailed || strings.Contains(stderr, canary) {
		t.Errorf("exit code %d, want %d without the password: %s", code, commandline.ExitFailed, stderr)
	}
}

// serveArgs returns a command line of relay serve, and the file of its fee payer.
func serveArgs(t *testing.T, database, rpc string) (args []string, payer string) {
	t.Helper()
	payer = filepath.Join(t.TempDir(), "payer.json")
	succeed(t, "", "keygen", payer)
	public := strings.TrimSpace(succeed(t, "", "compliance", "keygen", filepath.Join(t.TempDir(), "officer")))
	return []string{
		"serve", "--listen=127.0.0.1:0", "--operations-listen=127.0.0.1:0", "--database-url-file=" + file(t, database),
		"--rpc-url-file=" + file(t, rpc), "--verifying-key=" + verifyingKey, "--fee-payer-key-file=" + payer,
		"--compliance-public-key=" + public, "--log-level=debug",
	}, payer
}

// TestServeStopsBeforeItHasServed: a relay that gets a signal while it waits for its
// database exits with 0.
func TestServeStopsBeforeItHasServed(t *testing.T) {
	t.Parallel()
	args, _ := serveArgs(t, "postgres://relay@127.0.0.1:1/relay?connect_timeout=2", "http://127.0.0.1:1")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var stderr buffer
	ended := make(chan int, 1)
	go func() {
		ended <- run(&environment{Context: ctx, in: strings.NewReader(""), out: io.Discard, err: &stderr}, args)
	}()
	for deadline := time.Now().Add(testTimeout); !strings.Contains(stderr.String(), "database unreachable"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the relay does not wait for its database: %s", stderr.String())
		}
	}
	stop()
	select {
	case code := <-ended:
		if code != 0 {
			t.Errorf("exit code %d, want 0: %s", code, stderr.String())
		}
	case <-time.After(testTimeout):
		t.Fatalf("the relay does not stop: %s", stderr.String())
	}
}

func TestServeIsReadyAndDrainsOnSIGTERM(t *testing.T) {
	t.Parallel()
	chain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	defer chain.Close()
	args, payer := serveArgs(t, pgtest.URL(t), chain.URL+"/"+canary)

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var out, stderr buffer
	ended := make(chan int, 1)
	go func() {
		ended <- run(&environment{Context: ctx, in: strings.NewReader(""), out: &out, err: &stderr}, args)
	}()

	operations := regexp.MustCompile(`"operations":"([^"]+)"`)
	var address []string
	for deadline := time.Now().Add(testTimeout); address == nil; time.Sleep(10 * time.Millisecond) {
		if address = operations.FindStringSubmatch(stderr.String()); address == nil && time.Now().After(deadline) {
			t.Fatalf("the relay does not serve: %s", stderr.String())
		}
	}
	if status, body := get(t, "http://"+address[1]+contract.ReadinessPath); status != http.StatusOK {
		t.Errorf("%s answers %d %s, want 200: a chain that is down must not make the relay unready", contract.ReadinessPath, status, body)
	}
	_, metrics := get(t, "http://"+address[1]+contract.MetricsPath)
	for _, m := range []contract.Metric{contract.MetricBuildInfo, contract.MetricTracked, contract.MetricBacklog, contract.MetricBacklogAge, contract.MetricOpen} {
		if !strings.Contains(metrics, "\n"+m.Name) {
			t.Errorf("metric %s is missing", m.Name)
		}
	}
	for _, m := range []contract.Metric{contract.MetricPayerBalance, contract.MetricTreeLeaves, contract.MetricTreeCheck} {
		if strings.Contains(metrics, "\n"+m.Name) {
			t.Errorf("metric %s is present, although the chain has never answered", m.Name)
		}
	}
	stop()
	select {
	case code := <-ended:
		if code != 0 {
			t.Errorf("exit code %d, want 0: %s", code, stderr.String())
		}
	case <-time.After(testTimeout):
		t.Fatalf("the relay does not stop: %s", stderr.String())
	}
	for _, secret := range []string{canary, strings.TrimSpace(readFile(t, payer))} {
		if strings.Contains(stderr.String()+out.String(), secret) {
			t.Errorf("a secret is in the log: %s", stderr.String())
		}
	}
	if !strings.Contains(stderr.String(), `"profile":"shield-pool-v1"`) {
		t.Errorf("the log does not contain the configuration: %s", stderr.String())
	}
}

func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(content)
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
