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

func (s *Server) getHealth(p params) (any, *Error) {
	if err := p.want(0, 0); err != nil {
		return nil, err
	}
	if behind := s.behind.Load(); behind > 0 {
		return nil, errNodeBehind(behind)
	}
	return "ok", nil
}

func (s *Server) getVersion(p params) (any, *Error) {
	if err := p.want(0, 0); err != nil {
		return nil, err
	}
	return map[string]any{"solana-core": version, "feature-set": 0}, nil
}

func (s *Server) getGenesisHash(p params) (any, *Error) {
	if err := p.want(0, 0); err != nil {
		return nil, err
	}
	return s.genesis.String(), nil
}

// onView answers with what fn makes of the state that parameter i configures.
func (s *Server) onView(p params, i int, fn func(bank.View) any) (any, *Error) {
	if err := p.want(i, i+1); err != nil {
		return nil, err
	}
	var cfg contextConfig
	if err := p.decode(i, &cfg); err != nil {
		return nil, err
	}
	var result any
	err := s.read(cfg, func(v bank.View) { result = fn(v) })
	return result, err
}

func (s *Server) getSlot(p params) (any, *Error) {
	return s.onView(p, 0, func(v bank.View) any { return v.Slot() })
}

func (s *Server) getBlockHeight(p params) (any, *Error) {
	return s.onView(p, 0, func(v bank.View) any { return v.Height() })
}

func (s *Server) getTransactionCount(p params) (any, *Error) {
	return s.onView(p, 0, func(v bank.View) any { return v.Transactions() })
}

func (s *Server) getEpochInfo(p params) (any, *Error) {
	return s.onView(p, 0, func(v bank.View) any {
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

func (s *Server) getLatestBlockhash(p params) (any, *Error) {
	return s.onView(p, 0, func(v bank.View) any {
		hash, last := v.LatestBlockhash()
		return answerAt(v.Slot(), map[string]any{"blockhash": hash.String(), "lastValidBlockHeight": last})
	})
}

func (s *Server) isBlockhashValid(p params) (any, *Error) {
	if err := p.want(1, 2); err != nil {
		return nil, err
	}
	hash, err := p.key()
	if err != nil {
		return nil, err
	}
	return s.onView(p, 1, func(v bank.View) any {
		return answerAt(v.Slot(), v.BlockhashUsable(solana.Hash(hash)))
	})
}

func (s *Server) getMinimumBalanceForRentExemption(p params) (any, *Error) {
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

func (s *Server) getFeeForMessage(p params) (any, *Error) {
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
	return s.onView(p, 1, func(v bank.View) any {
		// A message that could not land at the level has no fee there.
		if budgetErr != nil || !v.BlockhashUsable(message.RecentBlockhash) {
			return answerAt(v.Slot(), nil)
		}
		return answerAt(v.Slot(), budget.Fee(int(message.Header.NumRequiredSignatures)))
	})
}

func (s *Server) getRecentPrioritizationFees(p params) (any, *Error) {
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
	s.bank.Read(bank.Processed, func(v bank.View) {
		for _, fee := range v.PrioritizationFees(addresses) {
			fees = append(fees, map[string]uint64{"slot": fee.Slot, "prioritizationFee": fee.Price})
		}
	})
	return fees, nil
}
