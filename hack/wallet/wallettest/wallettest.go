// Package wallettest starts the circuit's program once for a test binary.
package wallettest

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/relaypool/relaypool/hack/wallet"
)

// startWithin allows for fetching and compiling gnark on a slow machine.
const startWithin = 10 * time.Minute

// start runs once. The program ends when the test binary does, because its input is closed then.
var start = sync.OnceValues(func() (*wallet.Prover, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	return wallet.StartProver(ctx, wallet.Options{Progress: os.Stderr})
})

// Prover returns the test binary's prover. It fails the test when the circuit does not
// build. With -short the test is skipped: the circuit takes minutes to build, once, and
// a second of every core for each proof.
func Prover(t testing.TB) *wallet.Prover {
	t.Helper()
	if testing.Short() {
		t.Skip("it proves, which -short does without")
	}
	p, err := start()
	if err != nil {
		t.Fatal(err)
	}
	return p
}
