package app

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/poolcheck"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// stubChain is a chain that returns only a genesis hash.
type stubChain struct {
	genesis solana.Hash
	err     error
	reads   int
}

func (c *stubChain) GenesisHash(context.Context) (solana.Hash, error) {
	c.reads++
	return c.genesis, c.err
}

func (*stubChain) Accounts(context.Context, []solana.PublicKey) (uint64, []*onchain.Account, error) {
	return 0, nil, errors.New("no answer")
}

func TestHealthReportsKnownProblemsOfThePool(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &stubChain{err: errors.New("no answer")}
		p := &poolChecks{reader: c, target: poolcheck.Target{Profile: shieldpool.Development(), Genesis: shieldpool.DevelopmentGenesisHash, Key: &poolcheck.Key{Publics: shieldpool.SignalCount}}}
		if err := p.problem(t.Context()); err != nil {
			t.Errorf("chain does not answer: got %v, want no problem: another check reports it", err)
		}
		c.genesis, c.err = solana.Hash{1}, nil
		if err := p.problem(t.Context()); err == nil || !strings.Contains(err.Error(), "correct the RPC endpoint's URL") {
			t.Errorf("another chain: got %v, want a message with the remedy", err)
		}
		reads := c.reads
		if err := p.problem(t.Context()); err == nil || c.reads != reads {
			t.Errorf("got %v and %d reads, want the cached problem without a read", err, c.reads-reads)
		}
		time.Sleep(checksMaxAge)
		c.err = errors.New("no answer")
		if err := p.problem(t.Context()); err == nil || c.reads == reads {
			t.Errorf("got %v and %d reads, want the last known problem after another read", err, c.reads-reads)
		}
	})
}
