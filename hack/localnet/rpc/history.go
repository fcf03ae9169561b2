package rpc

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"

	"github.com/relaypool/relaypool/hack/localnet/bank"
)

const (
	maxStatuses   = 256
	maxSignatures = 1000
	// maxBlocks is the largest range of getBlocks, in slots.
	maxBlocks = 500_000
)

func (c *call) getSignatureStatuses(p params) (any, error) {
	var signatures []solana.Signature
	var cfg struct {
		SearchTransactionHistory bool `json:"searchTransactionHistory"`
	}
	if err := p.read(1, &signatures, &cfg); err != nil {
		return nil, err
	}
	if err := atMost(maxStatuses, len(signatures)); err != nil {
		return nil, err
	}
	return c.readAt(bank.Processed, func(v view) (any, error) {
		values := make([]*rpc.SignatureStatusesResult, len(signatures))
		for i, signature := range signatures {
			if status := v.Status(signature); status != nil && (status.Recent || cfg.SearchTransactionHistory) {
				values[i] = encodeStatus(status)
			}
		}
		if c.plan.Outcome != "" {
			c.claimFinal(values, v.Root())
		}
		return answerAt(v.Slot(), values), nil
	})
}

// claimFinal makes all statuses final, with the false outcome of the call's faults.
// Signatures that never landed get root as their slot.
func (c *call) claimFinal(values []*rpc.SignatureStatusesResult, root uint64) {
	for i, value := range values {
		slot := root
		if value != nil {
			slot = value.Slot
		}
		values[i] = &rpc.SignatureStatusesResult{
			Slot: slot, Err: c.claimedError(), Status: deprecatedStatus(c.claimedError()), ConfirmationStatus: rpc.ConfirmationStatusFinalized,
		}
	}
}

func encodeStatus(status *bank.Status) *rpc.SignatureStatusesResult {
	out := &rpc.SignatureStatusesResult{
		Slot: status.Block.Slot, Err: outcome(status.Meta.Err), Status: deprecatedStatus(outcome(status.Meta.Err)),
		ConfirmationStatus: rpc.ConfirmationStatusType(status.Commitment.String()),
	}
	if status.Commitment != bank.Finalized {
		out.Confirmations = &status.Confirmations
	}
	return out
}

// outcome returns err, or an untyped nil for a nil err.
func outcome(err *bank.TransactionError) any {
	if err == nil {
		return nil
	}
	return err
}

// deprecatedStatus is the value of the deprecated field status for an outcome.
func deprecatedStatus(err any) rpc.DeprecatedTransactionMetaStatus {
	if err != nil {
		return rpc.DeprecatedTransactionMetaStatus{"Err": err}
	}
	return rpc.DeprecatedTransactionMetaStatus{"Ok": nil}
}

func (c *call) getSignaturesForAddress(p params) (any, error) {
	var address solana.PublicKey
	var cfg struct {
		contextConfig
		Limit         *int             `json:"limit"`
		Before, Until solana.Signature // JSON names are matched without regard to case
	}
	if err := p.read(1, &address, &cfg); err != nil {
		return nil, err
	}
	if err := cfg.checkCommitment(); err != nil {
		return nil, err
	}
	query := bank.AddressQuery{Address: address, Before: cfg.Before, Until: cfg.Until, Limit: maxSignatures}
	if cfg.Limit != nil {
		query.Limit = *cfg.Limit
	}
	if query.Limit < 1 || query.Limit > maxSignatures {
		return nil, invalidParams("Invalid limit; max %d", maxSignatures)
	}
	return c.read(cfg.contextConfig, func(v view) (any, error) {
		found := []rpc.TransactionSignature{}
		for _, status := range v.ByAddress(query) {
			found = append(found, rpc.TransactionSignature{
				Signature: status.Signature(), Slot: status.Block.Slot, Err: outcome(status.Meta.Err), BlockTime: unixTime(status.Block),
				ConfirmationStatus: rpc.ConfirmationStatusType(status.Commitment.String()),
			})
		}
		return found, nil
	})
}

func unixTime(block *bank.Block) *solana.UnixTimeSeconds {
	unix := solana.UnixTimeSeconds(block.Time())
	return &unix
}

type historyConfig struct {
	contextConfig
	Encoding                       base64Only `json:"encoding"`
	MaxSupportedTransactionVersion *uint8     `json:"maxSupportedTransactionVersion"`
	TransactionDetails             string     `json:"transactionDetails"`
}

func (c *call) getTransaction(p params) (any, error) {
	var signature solana.Signature
	var cfg historyConfig
	if err := p.read(1, &signature, &cfg); err != nil {
		return nil, err
	}
	if err := cfg.checkCommitment(); err != nil {
		return nil, err
	}
	return c.read(cfg.contextConfig, func(v view) (any, error) {
		landed := v.Transaction(signature)
		if landed == nil {
			return nil, nil
		}
		out, err := encodeLanded(landed, &cfg)
		if err == nil {
			out["slot"], out["blockTime"] = landed.Block.Slot, landed.Block.Time()
		}
		return out, err
	})
}

// encodeLanded returns a transaction with its metadata. It adds the transaction's
// version when the client sets maxSupportedTransactionVersion.
func encodeLanded(l *bank.Landed, cfg *historyConfig) (map[string]any, error) {
	out := map[string]any{"transaction": inBase64(l.Raw), "meta": encodeMeta(l)}
	version, most := -1, -1
	switch l.GetVersion() {
	case solana.MessageVersionV0:
		version = 0
	case solana.MessageVersionV1:
		version = 1
	}
	if cfg.MaxSupportedTransactionVersion != nil {
		most = int(*cfg.MaxSupportedTransactionVersion)
	}
	switch {
	case version > most:
		return nil, errUnsupportedVersion(version)
	case most < 0:
	case version < 0:
		out["version"] = "legacy"
	default:
		out["version"] = version
	}
	return out, nil
}

func encodeMeta(l *bank.Landed) any {
	cost := l.Cost()
	return struct {
		rpc.TransactionMeta
		// ReturnData is never set. This field keeps the library from writing it.
		ReturnData json.RawMessage `json:"returnData,omitempty"`
	}{TransactionMeta: rpc.TransactionMeta{
		Err: outcome(l.Meta.Err), Status: deprecatedStatus(outcome(l.Meta.Err)), Fee: l.Meta.Fee,
		PreBalances: l.Meta.PreBalances, PostBalances: l.Meta.PostBalances,
		PreTokenBalances: l.Meta.PreTokens, PostTokenBalances: l.Meta.PostTokens,
		InnerInstructions: l.Meta.Inner, LogMessages: l.Meta.Logs, Rewards: []rpc.BlockReward{},
		LoadedAddresses: l.Loaded, ComputeUnitsConsumed: &l.Meta.Units, CostUnits: &cost,
	}}
}

func (c *call) getBlock(p params) (any, error) {
	var slot uint64
	cfg := historyConfig{TransactionDetails: "full"}
	if err := p.read(1, &slot, &cfg); err != nil {
		return nil, err
	}
	if err := cfg.checkCommitment(); err != nil {
		return nil, err
	}
	if cfg.TransactionDetails != "full" {
		return nil, invalidParams("Invalid params: unknown variant `%s`, expected `full`", cfg.TransactionDetails)
	}
	return c.read(cfg.contextConfig, func(v view) (any, error) {
		block, err := v.Block(slot)
		if err != nil {
			return nil, errBlock(err, slot, v.FirstAvailableBlock())
		}
		transactions := make([]any, len(block.Landed))
		for i, landed := range block.Landed {
			if transactions[i], err = encodeLanded(landed, &cfg); err != nil {
				return nil, err
			}
		}
		unknown, err := ofUnknownVersion(c.plan.UnknownVersionBytes, block, &cfg)
		if err != nil {
			return nil, err
		}
		transactions = append(transactions, unknown...)
		return map[string]any{
			"blockhash": block.Hash, "previousBlockhash": block.ParentHash, "parentSlot": block.ParentSlot,
			"blockHeight": block.Height, "blockTime": block.Time(), "transactions": transactions,
		}, nil
	})
}

const (
	// unknownVersion is the version of transactions that nobody can decode yet.
	unknownVersion = 2
	// unknownVersionSize is the size of one of them in bytes.
	unknownVersionSize = 4096
)

// ofUnknownVersion returns transactions of a version that nobody can decode yet, of that
// many bytes in all. Their bytes differ.
func ofUnknownVersion(size uint64, block *bank.Block, cfg *historyConfig) (out []any, err error) {
	if size > 0 && (cfg.MaxSupportedTransactionVersion == nil || *cfg.MaxSupportedTransactionVersion < unknownVersion) {
		return nil, errUnsupportedVersion(unknownVersion)
	}
	for done := uint64(0); done < size; done += unknownVersionSize {
		raw := make([]byte, min(unknownVersionSize, size-done))
		raw[0] = 0x80 | unknownVersion
		digest := sha256.Sum256(binary.LittleEndian.AppendUint64(block.ParentHash[:], done))
		copy(raw[1:], digest[:])
		out = append(out, map[string]any{"version": unknownVersion, "transaction": inBase64(raw), "meta": map[string]any{
			"err": nil, "status": deprecatedStatus(nil), "fee": bank.LamportsPerSignature, "preBalances": []uint64{}, "postBalances": []uint64{},
			"innerInstructions": []any{}, "logMessages": []string{}, "loadedAddresses": map[string]any{"writable": []string{}, "readonly": []string{}},
		}})
	}
	return out, nil
}

func errBlock(missing error, slot, first uint64) error {
	switch {
	case errors.Is(missing, bank.ErrBlockCleanedUp):
		return errorf(codeBlockCleanedUp, "Block %d cleaned up, does not exist on node. First available block: %d", slot, first)
	case errors.Is(missing, bank.ErrSlotSkipped):
		return errorf(codeSlotSkipped, "Slot %d was skipped, or missing due to ledger jump to recent snapshot", slot)
	default:
		return errorf(codeBlockNotAvailable, "Block not available for slot %d", slot)
	}
}

func (c *call) getBlocks(p params) (any, error) {
	var first, last uint64
	var cfg contextConfig
	if err := p.read(2, &first, &last, &cfg); err != nil {
		return nil, err
	}
	if err := cfg.checkCommitment(); err != nil {
		return nil, err
	}
	return c.read(cfg, func(v view) (any, error) {
		last = min(last, v.Slot())
		if last > first && last-first > maxBlocks {
			return nil, invalidParams("Slot range too large; max %d", maxBlocks)
		}
		return v.Blocks(first, last), nil
	})
}
