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

// checkedChain is a chain of which only the genesis hash is right or wrong.
type checkedChain struct {
	genesis solana.Hash
	err     error
	reads   int
}

func (c *checkedChain) GenesisHash(context.Context) (solana.Hash, error) {
	c.reads++
	return c.genesis, c.err
}

func (*checkedChain) Accounts(context.Context, []solana.PublicKey) (uint64, []*onchain.Account, error) {
	return 0, nil, errors.New("no answer")
}

func TestHealthReportsKnownProblemsOfThePool(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &checkedChain{err: errors.New("no answer")}
		p := &poolChecks{reader: c, target: poolcheck.Target{Profile: shieldpool.Development(), Genesis: shieldpool.DevelopmentGenesisHash, Key: &poolcheck.Key{Publics: shieldpool.SignalCount}}}
		if err := p.problem(t.Context()); err != nil {
			t.Errorf("got %v of a chain that does not answer, want nothing: another check reports it", err)
		}
		c.genesis, c.err = solana.Hash{1}, nil
		if err := p.problem(t.Context()); err == nil || !strings.Contains(err.Error(), "correct the RPC endpoint's URL") {
			t.Errorf("got %v of another chain, want what to do", err)
		}
		reads := c.reads
		if err := p.problem(t.Context()); err == nil || c.reads != reads {
			t.Errorf("got %v and %d reads, want the same from the cache", err, c.reads-reads)
		}
		time.Sleep(checksMaxAge)
		c.err = errors.New("no answer")
		if err := p.problem(t.Context()); err == nil || c.reads == reads {
			t.Errorf("got %v and %d reads, want the last known state after another read", err, c.reads-reads)
		}
	})
}
