package rpc

import (
	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"

	"github.com/relaypool/relaypool/hack/localnet/bank"
)

const (
	// slotsPerEpoch is the number on mainnet.
	slotsPerEpoch = 432_000
	// maxFeeAddresses is the largest number of addresses in a call of getRecentPrioritizationFees.
	maxFeeAddresses = 128
)

func (c *call) getVersion(p params) (any, error) {
	return map[string]any{"solana-core": version, "feature-set": 0}, p.read(0)
}

func (c *call) getGenesisHash(p params) (any, error) { return c.genesis, p.read(0) }

// onView makes a method that answers with fn's result. The method's only parameter
// is an optional contextConfig, which says which state fn reads.
func onView(fn func(view) any) method {
	return func(c *call, p params) (any, error) {
		var cfg contextConfig
		if err := p.read(0, &cfg); err != nil {
			return nil, err
		}
		return c.read(cfg, func(v view) (any, error) { return fn(v), nil })
	}
}

func epochInfo(v view) any {
	return map[string]uint64{
		"absoluteSlot":     v.Slot(),
		"blockHeight":      v.Height(),
		"epoch":            v.Slot() / slotsPerEpoch,
		"slotIndex":        v.Slot() % slotsPerEpoch,
		"slotsInEpoch":     slotsPerEpoch,
		"transactionCount": v.Transactions(),
	}
}

func latestBlockhash(v view) any {
	hash, last := v.LatestBlockhash()
	return answerAt(v.Slot(), rpc.LatestBlockhashResult{Blockhash: hash, LastValidBlockHeight: last})
}

// getLatestBlockhash answers with the newest blockhash. Under the fault
// frozenBlockhash it repeats the answer of the time when the fault was set.
func (c *call) getLatestBlockhash(p params) (any, error) {
	if !c.plan.FrozenBlockhash {
		return onView(latestBlockhash)(c, p)
	}
	var cfg contextConfig
	err := p.read(0, &cfg)
	return (*c.frozen.Load())[bank.Commitment(cfg.Commitment)], err
}

func (c *call) getMinimumBalanceForRentExemption(p params) (any, error) {
	var size uint64
	var cfg contextConfig
	if err := p.read(1, &size, &cfg); err != nil {
		return nil, err
	}
	if size > bank.MaxAccountData {
		return nil, invalidParams("Invalid params: data length %d is above the largest account's %d", size, bank.MaxAccountData)
	}
	return c.read(cfg, func(v view) (any, error) { return v.Rent().Exemption(size), nil })
}

func (c *call) getRecentPrioritizationFees(p params) (any, error) {
	var addresses []solana.PublicKey
	if err := p.read(0, &addresses); err != nil {
		return nil, err
	}
	if err := atMost(maxFeeAddresses, len(addresses)); err != nil {
		return nil, err
	}
	return c.readAt(bank.Processed, func(v view) (any, error) { return v.PrioritizationFees(addresses), nil })
}

func (c *call) requestAirdrop(p params) (any, error) {
	var to solana.PublicKey
	var lamports uint64
	if err := p.read(2, &to, &lamports, new(contextConfig)); err != nil {
		return nil, err
	}
	return c.airdrop(to, lamports)
}

// maxSamples is the largest number of performance samples in an answer.
const maxSamples = 720

func (c *call) getRecentPerformanceSamples(p params) (any, error) {
	limit := uint64(maxSamples)
	if err := p.read(0, &limit); err != nil {
		return nil, err
	}
	if limit > maxSamples {
		return nil, invalidParams("Invalid limit; max %d", maxSamples)
	}
	return c.readAt(bank.Finalized, func(v view) (any, error) {
		out := []any{}
		for _, s := range v.Samples(int(limit)) { //nolint:gosec // at most maxSamples
			out = append(out, map[string]uint64{
				"slot": s.Slot + v.ahead(), "numSlots": s.Slots, "samplePeriodSecs": s.Seconds,
				"numTransactions": s.Transactions, "numNonVoteTransactions": s.Transactions,
			})
		}
		return out, nil
	})
}

// The sizes in bytes of a certificate's parts.
const (
	certSignatureSize = 192
	certBitmapSize    = 256
)

// getAgGenesisCert answers with the certificate of Alpenglow's genesis block, or null under
// TowerBFT. This chain has one validator and no BLS keys: signature and bitmap are zero.
func (c *call) getAgGenesisCert(p params) (any, error) {
	if err := p.read(0); err != nil {
		return nil, err
	}
	return c.readAt(bank.Finalized, func(v view) (any, error) {
		genesis := v.GenesisBlock()
		if genesis == nil {
			return nil, nil //nolint:nilnil // null is the answer
		}
		return map[string]any{
			"block":     map[string]any{"slot": genesis.Slot, "blockId": numbers(genesis.Hash[:])},
			"signature": map[string]any{"signature": numbers(make([]byte, certSignatureSize)), "bitmap": numbers(make([]byte, certBitmapSize))},
		}, nil
	})
}

// numbers makes bytes an array of numbers in JSON.
func numbers(raw []byte) []uint16 {
	out := make([]uint16, len(raw))
	for i, b := range raw {
		out[i] = uint16(b)
	}
	return out
}
