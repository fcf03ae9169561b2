package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/internal/app"
	"github.com/relaypool/relaypool/relay/internal/config"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/poolcheck"
	"github.com/relaypool/relaypool/relay/rpc"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// probedPayer is one fee payer.
type probedPayer struct {
	Address  string          `json:"address"`
	State    poolcheck.State `json:"state"`
	Lamports *uint64         `json:"lamports,omitempty"`
	// Transactions is the number of Transact calls that the balance above the minimum pays for.
	Transactions *uint64 `json:"transactions,omitempty"`
	// Runway is how long the balance lasts at the last hour's rate. It is omitted when
	// nothing was spent or the chain's history is too short.
	Runway *float64 `json:"runway_hours,omitempty"`
	Remedy string   `json:"remedy,omitempty"`
}

func (p *probe) payer(ctx context.Context, client *rpc.Client, slot uint64, address solana.PublicKey, lamports uint64, known bool) probedPayer {
	out := probedPayer{Address: address.String(), State: poolcheck.Unknown, Remedy: "probe again: the balance could not be read"}
	if !known {
		return out
	}
	minimum := p.flags.FeePayerMinBalance
	transactions := (max(lamports, minimum) - minimum) / shieldpool.TransactCost
	out.State, out.Remedy, out.Lamports, out.Transactions = poolcheck.OK, "", &lamports, &transactions
	if lamports < minimum {
		out.State, out.Remedy = poolcheck.Failed, fmt.Sprintf("send at least %d lamports to %s", minimum-lamports, address)
	}
	ctx, cancel := context.WithTimeout(ctx, p.flags.Timeout)
	defer cancel()
	slotDuration, err := client.SlotDuration(ctx)
	if err != nil { // for example because the node started a moment ago
		slotDuration = onchain.NominalSlot
	}
	slotsPerHour := onchain.SlotsIn(time.Hour, slotDuration)
	spent, slots, err := client.SpentSince(ctx, address, lamports, slot-min(slot, slotsPerHour), slot)
	if err == nil && spent > 0 {
		hours := float64(lamports) / float64(spent) * float64(slots) / float64(slotsPerHour)
		out.Runway = &hours
	}
	return out
}

// checkSigners asks each key service for its key. A fault replaces the payer's state and remedy,
// because funds without a signer are of no use.
func (p *probe) checkSigners(ctx context.Context, r *probeReport) {
	ctx, cancel := context.WithTimeout(ctx, p.flags.Timeout)
	defer cancel()
	var checks sync.WaitGroup
	for i := range r.Payers {
		of := slices.IndexFunc(p.Signers, func(s config.Signer) bool { return s.Address.String() == r.Payers[i].Address })
		if of < 0 {
			continue
		}
		checks.Go(func() {
			signers, err := app.Signers(ctx, p.Signers[of:of+1], slog.New(slog.DiscardHandler), nil)
			if err == nil {
				err = signers[0].Check(ctx)
			}
			if err != nil {
				r.Payers[i].State, r.Payers[i].Remedy = poolcheck.Failed, err.Error()
			}
		})
	}
	checks.Wait()
}
