package main

import (
	"context"
	"fmt"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/rpc"
)

// shortfall is what a payer lacks of its target, in lamports.
type shortfall struct {
	to               solana.PublicKey
	balance, missing uint64
}

// maxBalances is how many balances one request may ask for.
const maxBalances = 100

// readBalances reads the payers' balances from the chain.
func readBalances(ctx context.Context, endpoint *rpc.Client, payers []payer) error {
	for start := 0; start < len(payers); start += maxBalances {
		part := payers[start:min(start+maxBalances, len(payers))]
		addresses := make([]solana.PublicKey, len(part))
		for i := range part {
			addresses[i] = part[i].address
		}
		lamports, _, err := endpoint.Balances(ctx, addresses)
		if err != nil {
			return fmt.Errorf("read the payers' balances: %w", err)
		}
		for i := range part {
			part[i].lamports = &lamports[i]
		}
	}
	return nil
}

// findShort returns what payers lack that hold less than their minimum or, with topUp, less than
// their target. A balance that is not exact is rounded down, so the missing amount is rounded up.
func findShort(payers []payer, spec *v1alpha1.FeePayers, topUp, exact bool) (short []shortfall) {
	minimum, target := balancesWanted(spec)
	limit := minimum
	if topUp {
		limit = target
	}
	for _, p := range payers {
		if p.lamports == nil || *p.lamports >= limit {
			continue
		}
		missing := target - *p.lamports
		if !exact {
			missing = (missing + roundingUnit - 1) / roundingUnit * roundingUnit
		}
		short = append(short, shortfall{p.address, *p.lamports, missing})
	}
	return short
}

// clusterURL is what solana's --url takes for the RelayPool's chain: its name or, of another chain, a
// placeholder, so that a copied command cannot send on the chain of solana's own settings.
func clusterURL(pool *v1alpha1.RelayPool) string {
	switch cluster := pool.Spec.Solana.Cluster; cluster {
	case "mainnet-beta", "devnet", "testnet":
		return cluster
	default:
		return "RPC_URL"
	}
}

// printShort prints the shortfalls, and the command that mends each.
func printShort(env *environment, pool *v1alpha1.RelayPool, payers []payer, short []shortfall) {
	minimum, target := balancesWanted(&pool.Spec.FeePayers)
	unknown := 0
	for _, p := range payers {
		if p.lamports == nil {
			unknown++
			fmt.Fprintf(env.err, "the balance of %s is not known yet: --rpc-url reads it from the chain\n", p.address)
		}
	}
	if len(short) == 0 && unknown == 0 {
		fmt.Fprintf(env.out, "every fee payer in use holds its minimum of %s SOL\n", onchain.SOL(minimum))
	}
	for _, s := range short {
		fmt.Fprintf(env.out, "%s holds %s SOL and lacks %d lamports of its target of %s SOL:\n  solana transfer --url %s --allow-unfunded-recipient %s %s\n",
			s.to, onchain.SOL(s.balance), s.missing, onchain.SOL(target), clusterURL(pool), s.to, onchain.SOL(s.missing))
	}
}
