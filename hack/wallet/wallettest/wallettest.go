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

// startWithin is long enough to fetch and compile gnark on a slow machine.
const startWithin = 10 * time.Minute

// start starts the prover once. The prover's program ends with the test binary, which closes its
// input.
var start = sync.OnceValues(func() (*wallet.Prover, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	return wallet.StartProver(ctx, wallet.Options{Progress: os.Stderr})
})

// Prover returns the test binary's prover. It fails the test when the circuit does not
// build. With -short it skips the test: the first build of the circuit takes minutes, and
// each proof takes a second on every core.
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
