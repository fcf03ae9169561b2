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

// startTimeout is long enough to download and compile gnark on a slow machine.
const startTimeout = 10 * time.Minute

// start starts the prover once. The prover's program ends with the test binary, which closes its
// input.
var start = sync.OnceValues(func() (*wallet.Prover, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	return wallet.StartProver(ctx, wallet.Options{Progress: os.Stderr})
})

// Prover returns the test binary's prover. It fails the test when the circuit does not
// build. With -short it skips the test: the first build of the circuit takes minutes, and
// each proof takes a second on every core.
func Prover(t testing.TB) *wallet.Prover {
	t.Helper()
	if testing.Short() {
		t.Skip("the test makes proofs, which -short skips")
	}
	p, err := start()
	if err != nil {
		t.Fatal(err)
	}
	return p
}
