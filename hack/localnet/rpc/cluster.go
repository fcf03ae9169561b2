package rpc

import (
	"encoding/base64"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/localnet/bank"
)

const (
	// slotsPerEpoch is mainnet's.
	slotsPerEpoch = 432_000
	// maxFeeAddresses bounds getRecentPrioritizationFees.
	maxFeeAddresses = 128
)

func (c *call) getHealth(p params) (any, *Error) {
	if err := p.want(0, 0); err != nil {
		return nil, err
	}
	if behind := c.healthTold(); behind > 0 {
		return nil, errNodeBehind(behind)
	}
	return "ok", nil
}

func (c *call) getVersion(p params) (any, *Error) {
	if err := p.want(0, 0); err != nil {
		return nil, err
	}
	return map[string]any{"solana-core": version, "feature-set": 0}, nil
}

func (c *call) getGenesisHash(p params) (any, *Error) {
	if err := p.want(0, 0); err != nil {
		return nil, err
	}
	return c.genesis.String(), nil
}

// onView answers with what fn makes of the state that parameter i configures.
func (c *call) onView(p params, i int, fn func(view) any) (any, *Error) {
	if err := p.want(i, i+1); err != nil {
		return nil, err
	}
	var cfg contextConfig
	if err := p.decode(i, &cfg); err != nil {
		return nil, err
	}
	var result any
	err := c.read(cfg, func(v view) { result = fn(v) })
	return result, err
}

func (c *call) getSlot(p params) (any, *Error) {
	return c.onView(p, 0, func(v view) any { return v.Slot() })
}

func (c *call) getBlockHeight(p params) (any, *Error) {
	return c.onView(p, 0, func(v view) any { return v.Height() })
}

func (c *call) getTransactionCount(p params) (any, *Error) {
	return c.onView(p, 0, func(v view) any { return v.Transactions() })
}

func (c *call) getEpochInfo(p params) (any, *Error) {
	return c.onView(p, 0, func(v view) any {
		return map[string]uint64{
			"absoluteSlot":     v.Slot(),
			"blockHeight":      v.Height(),
			"epoch":            v.Slot() / slotsPerEpoch,
			"slotIndex":        v.Slot() % slotsPerEpoch,
			"slotsInEpoch":     slotsPerEpoch,
			"transactionCount": v.Transactions(),
		}
	})
}

func (c *call) getLatestBlockhash(p params) (any, *Error) {
	if c.plan.FrozenBlockhash {
		return c.frozenBlockhash(p)
	}
	return c.onView(p, 0, latestBlockhash)
}

func latestBlockhash(v view) any {
	hash, last := v.LatestBlockhash()
	return answerAt(v.Slot(), map[string]any{"blockhash": hash.String(), "lastValidBlockHeight": last})
}

// frozenBlockhash answers what was true when the faults were set.
func (c *call) frozenBlockhash(p params) (any, *Error) {
	if err := p.want(0, 1); err != nil {
		return nil, err
	}
	var cfg contextConfig
	if err := p.decode(0, &cfg); err != nil {
		return nil, err
	}
	return (*c.frozen.Load())[bank.Commitment(cfg.Commitment)], nil
}

func (c *call) isBlockhashValid(p params) (any, *Error) {
	if err := p.want(1, 2); err != nil {
		return nil, err
	}
	hash, err := p.key()
	if err != nil {
		return nil, err
	}
	return c.onView(p, 1, func(v view) any {
		return answerAt(v.Slot(), v.BlockhashUsable(solana.Hash(hash)))
	})
}

func (c *call) getMinimumBalanceForRentExemption(p params) (any, *Error) {
	if err := p.want(1, 2); err != nil {
		return nil, err
	}
	var size uint64
	if err := p.decode(0, &size); err != nil {
		return nil, err
	}
	if size > bank.MaxAccountData {
		return nil, invalidParams("Invalid params: data length %d is above the largest account's %d", size, bank.MaxAccountData)
	}
	return bank.RentExemption(size), nil
}

func (c *call) getFeeForMessage(p params) (any, *Error) {
	if err := p.want(1, 2); err != nil {
		return nil, err
	}
	var text string
	if err := p.decode(0, &text); err != nil {
		return nil, err
	}
	raw, decodeErr := base64.StdEncoding.DecodeString(text)
	if decodeErr != nil {
		return nil, invalidParams("invalid base64 encoding: %v", decodeErr)
	}
	message, decodeErr := bank.DecodeMessage(raw)
	if decodeErr != nil {
		return nil, invalidParams("failed to deserialize solana_message::versioned::VersionedMessage: %v", decodeErr)
	}
	budget, budgetErr := message.Budget()
	return c.onView(p, 1, func(v view) any {
		// A message that could not land at the level has no fee there.
		if budgetErr != nil || !v.BlockhashUsable(message.RecentBlockhash) {
			return answerAt(v.Slot(), nil)
		}
		return answerAt(v.Slot(), budget.Fee(int(message.Header.NumRequiredSignatures)))
	})
}

func (c *call) getRecentPrioritizationFees(p params) (any, *Error) {
	if err := p.want(0, 1); err != nil {
		return nil, err
	}
	var texts []string
	if err := p.decode(0, &texts); err != nil {
		return nil, err
	}
	if len(texts) > maxFeeAddresses {
		return nil, invalidParams("Too many inputs provided; max %d", maxFeeAddresses)
	}
	addresses, err := parseKeys(texts)
	if err != nil {
		return nil, err
	}
	fees := []map[string]uint64{}
	c.readAt(bank.Processed, func(v view) {
		for _, fee := range v.PrioritizationFees(addresses) {
			fees = append(fees, map[string]uint64{"slot": fee.Slot, "prioritizationFee": fee.Price})
		}
	})
	return fees, nil
}
