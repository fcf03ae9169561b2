package main

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"
	"golang.org/x/sync/errgroup"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/relay/internal/app"
	"github.com/relaypool/relaypool/relay/internal/chain"
	"github.com/relaypool/relaypool/relay/internal/config"
	"github.com/relaypool/relaypool/relay/internal/feepayer"
	"github.com/relaypool/relaypool/relay/internal/ledger"
	"github.com/relaypool/relaypool/relay/internal/pgtest"
	"github.com/relaypool/relaypool/relay/internal/store"
)

const (
	sol = solana.LAMPORTS_PER_SOL
	// sweepFee is the fee of a sweep in these tests, which set no priority fee.
	sweepFee = 5000
)

// rotation is a chain whose slots pass quickly, a database, and the keys of two
// payers before and after a rotation.
type rotation struct {
	*testing.T
	net      *localnet.Chain
	rpc      string
	database string
	old, new [2]*feepayer.Key
	// files are the files of the old keys and of the first new key.
	files []string
}

func newRotation(t *testing.T) *rotation {
	t.Helper()
	vk, err := os.ReadFile(verifyingKey)
	noError(t, err)
	r := &rotation{T: t, database: pgtest.URL(t)}
	r.net, err = localnet.New(localnet.Options{VerifyingKey: vk, SlotDuration: 8 * time.Millisecond})
	noError(t, err)
	t.Cleanup(func() { noError(t, r.net.Close()) })
	r.rpc, err = r.net.Listen("127.0.0.1:0")
	noError(t, err)
	folder := t.TempDir()
	for i, key := range []**feepayer.Key{&r.old[0], &r.old[1], &r.new[0], &r.new[1]} {
		*key, err = feepayer.Generate(rand.Reader)
		noError(t, err)
		path := filepath.Join(folder, fmt.Sprint(i))
		noError(t, (*key).WriteFile(path))
		r.files = append(r.files, path)
	}
	noError(t, r.net.Fund(r.old[0].PublicKey(), 2*sol))
	noError(t, r.net.Fund(r.old[1].PublicKey(), sol+sol/2))
	r.net.Finalize()
	r.net.Start(t.Context())
	succeed(t, "", "migrate", "--database-url-file="+file(t, r.database), "--log-level=warn")
	return r
}

// flags returns the flags that all steps of relay sweep share.
func (r *rotation) flags(rpc, database string) []string {
	return []string{
		"--database-url-file=" + file(r.T, database), "--rpc-url=" + rpc, "--genesis-hash=" + localnet.GenesisHash.String(),
		"--timeout=2m", "--termination-log=" + filepath.Join(r.TempDir(), "termination"), "--log-level=debug",
	}
}

func (r *rotation) fund() []string {
	return []string{"sweep", "fund", "--from=" + r.files[0], "--from=" + r.files[1], "--to=" + r.files[2] + "," + r.new[1].PublicKey().String(), fmt.Sprintf("--target=%d", sol), fmt.Sprintf("--keep=%d", sol/20)}
}

func (r *rotation) all() []string {
	return []string{"sweep", "all", "--from=" + r.files[0] + "," + r.files[1], "--to=" + r.new[0].PublicKey().String()}
}

func (r *rotation) balances() (out [4]uint64) {
	r.Helper()
	client := rpc.New(r.rpc)
	for i, key := range []*feepayer.Key{r.old[0], r.old[1], r.new[0], r.new[1]} {
		got, err := client.GetBalance(r.Context(), key.PublicKey(), rpc.CommitmentFinalized)
		noError(r.T, err)
		out[i] = got.Value
	}
	return out
}

// reconciledLedger reconciles the ledger as a relay with only the new keys does, and returns
// the output of relay ledger afterwards.
func (r *rotation) reconciledLedger() ledger.Statement {
	r.Helper()
	pool, err := store.Open(r.Context(), r.database, store.TLSFiles{}, 4)
	noError(r.T, err)
	defer pool.Close()
	s, err := store.New(pool)
	noError(r.T, err)
	endpoints, err := app.Endpoints([]config.Endpoint{{Name: "rpc", URL: config.NewSecret(r.rpc)}}, chain.EndpointsOptions{Log: slog.New(slog.DiscardHandler)})
	noError(r.T, err)
	defer endpoints.Close()
	reconciler, err := ledger.NewReconciler(ledger.ReconcilerOptions{
		Payers: []solana.PublicKey{r.new[0].PublicKey(), r.new[1].PublicKey()}, Store: s.Ledger(), Chain: endpoints, Observer: noObserver{},
		Log: slog.New(slog.NewTextHandler(r.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})), Now: time.Now,
	})
	noError(r.T, err)
	noError(r.T, reconciler.Reconcile(r.Context()))
	code, out, stderr := command(r.T, "", "ledger", "--json", "--database-url-file="+file(r.T, r.database), "--rpc-url="+r.rpc, "--log-level=warn")
	if code != 0 {
		r.Errorf("relay ledger: exit code %d, want 0: %s%s", code, stderr, out)
	}
	var statement ledger.Statement
	noError(r.T, json.Unmarshal([]byte(out), &statement))
	return statement
}

// wantLedger checks that the ledger has the moved lamports, and counts none of them as
// income, expense or theft.
func (r *rotation) wantLedger(sweeps uint64) {
	r.Helper()
	s := r.reconciledLedger()
	if len(s.Payers) != 4 {
		r.Errorf("the ledger has %d payers, want both old and both new", len(s.Payers))
	}
	var moved, spent int64
	var received uint64
	for _, p := range s.Payers {
		moved, received, spent = moved+p.Moved, received+p.Received, spent+p.Spent
	}
	if moved != 0 || received != 3*sol+sol/2 || spent != int64(sweeps*sweepFee) {
		r.Errorf("the ledger has %d moved, %d received and %d spent, want 0, %d and %d", moved, received, spent, 3*sol+sol/2, sweeps*sweepFee)
	}
	for _, k := range s.Kinds {
		if k.Kind != ledger.KindSweep && k.Kind != ledger.KindReceived {
			r.Errorf("the ledger has %d transactions of kind %s", k.Transactions, k.Kind)
		}
	}
}

func TestARotationByHand(t *testing.T) {
	t.Parallel()
	r := newRotation(t)
	k := newKiller(t, killPoint{})
	flags := r.flags(r.rpc, r.database)
	if code, output := k.run(append(r.fund(), flags...)...); code != 0 || !strings.Contains(output, fmt.Sprintf("fund is done: moved %d lamports in 2 transactions, which cost %d", 2*sol, 2*sweepFee)) {
		t.Fatalf("funding: exit code %d: %s", code, output)
	}
	if got, want := r.balances(), ([4]uint64{sol / 20, sol + sol*9/20 - 2*sweepFee, sol, sol}); got != want {
		t.Errorf("balances are %d, want %d", got, want)
	}
	if code, output := k.run(append([]string{"sweep", "drain", "--from=" + r.files[0], "--from=" + r.old[1].PublicKey().String()}, flags...)...); code != 0 {
		t.Fatalf("draining: exit code %d, want 0: %s", code, output)
	}
	if code, output := k.run(append(r.all(), flags...)...); code != 0 {
		t.Fatalf("sweeping: exit code %d, want 0: %s", code, output)
	}
	if got, want := r.balances(), ([4]uint64{0, 0, 2*sol + sol/2 - 4*sweepFee, sol}); got != want {
		t.Errorf("balances are %d, want %d", got, want)
	}
	if output := readFile(t, strings.TrimPrefix(flags[4], "--termination-log=")); !strings.HasPrefix(output, "all is done: moved ") || strings.Contains(output, "\n") {
		t.Errorf("the termination message is %q", output)
	}
	r.wantLedger(4)
}

// TestSweepKilledAtEachCall kills the process before and after each of its calls to chain
// and database, and runs it again. It must never move a lamport twice, or lose one.
func TestSweepKilledAtEachCall(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it runs a process for each call that it makes")
	}
	steps := map[string]struct {
		args func(*rotation) []string
		// want returns the balances after that many transactions; after funding, only those of
		// the new payers are certain.
		want func(sweeps uint64) [4]uint64
	}{
		"fund": {(*rotation).fund, func(uint64) [4]uint64 { return [4]uint64{0, 0, sol, sol} }},
		"all":  {(*rotation).all, func(sweeps uint64) [4]uint64 { return [4]uint64{0, 0, 3*sol + sol/2 - sweeps*sweepFee, 0} }},
	}
	for name, step := range steps {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check := func(r *rotation, sweeps uint64) { wantBalances(r, name, step.want(sweeps)) }
			calls := killOnce(t, step.args, killPoint{}, check)
			t.Logf("%s makes these calls: %v", name, calls)
			var group errgroup.Group
			group.SetLimit(3)
			for call, times := range calls {
				for n := range min(times, killsPerCall(call)) {
					for _, after := range []bool{false, true} {
						group.Go(func() error {
							killOnce(t, step.args, killPoint{call, n + 1, after}, check)
							return nil
						})
					}
				}
			}
			noError(t, group.Wait())
		})
	}
}

// killsPerCall returns at how many calls of one kind the process is killed: at two if the call
// changes something, because there are two payers; else at the first.
func killsPerCall(call string) int {
	for _, changes := range []string{"sendTransaction", "INSERT", "UPDATE", "WITH new AS", "commit"} {
		if strings.HasPrefix(call, changes) {
			return 2
		}
	}
	return 1
}

func wantBalances(r *rotation, step string, want [4]uint64) {
	r.Helper()
	got := r.balances()
	if got[2] != want[2] || got[3] != want[3] || step == "all" && got != want {
		r.Errorf("balances are %d, want %d", got, want)
	}
}

// killOnce runs a step until it is killed, and then again until it is done. It returns the
// calls of the first run.
func killOnce(t *testing.T, args func(*rotation) []string, at killPoint, check func(r *rotation, sweeps uint64)) (calls map[string]int) {
	t.Helper()
	r := newRotation(t)
	// The test makes two hundred chains, whose slots would take all processors.
	defer func() { noError(t, r.net.Close()) }()
	k := newKiller(t, at)
	server := httptest.NewServer(k.chain(r.rpc))
	defer server.Close()
	flags := r.flags(server.URL, k.database(r.database))
	code, output := k.run(append(args(r), flags...)...)
	k.mu.Lock()
	calls = maps.Clone(k.calls)
	k.mu.Unlock()
	// Some polls are not made in every run. Then the process is not killed.
	if (code != 0) != k.killed {
		t.Errorf("killed: %v (%s), exit code %d, want 0 only without a kill: %s", k.killed, at, code, output)
	}
	if k.killed {
		if code, output := k.run(append(args(r), flags...)...); code != 0 {
			t.Errorf("run again after a kill %s: exit code %d, want 0: %s", at, code, output)
		}
	}
	var sum uint64
	for _, b := range r.balances() {
		sum += b
	}
	sweeps := (3*sol + sol/2 - sum) / sweepFee
	check(r, sweeps)
	if sweeps != 2 {
		t.Errorf("with a kill %s, the sweep took %d transactions, want 2", at, sweeps)
	}
	if args(r)[1] == "all" {
		r.wantOldLedger()
	}
	return calls
}

// wantOldLedger checks that the ledger of the old keys is complete, because no relay will
// read it any more.
func (r *rotation) wantOldLedger() {
	r.Helper()
	code, out, stderr := command(r.T, "", "ledger", "--json", "--database-url-file="+file(r.T, r.database), "--log-level=warn")
	var s ledger.Statement
	noError(r.T, json.Unmarshal([]byte(out), &s))
	if code != 0 || len(s.Payers) != 2 {
		r.Errorf("relay ledger: exit code %d: %s%s", code, stderr, out)
	}
	for _, p := range s.Payers {
		if p.Closing != 0 || p.Unknown != 0 || p.Unexplained != 0 {
			r.Errorf("the ledger has %+v, want no balance and nothing unexplained", p)
		}
	}
}
