package rpc

import (
	"errors"

	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/hack/localnet/fault"
)

const versionedTransaction = "solana_transaction::versioned::VersionedTransaction"

type sendConfig struct {
	SkipPreflight       bool       `json:"skipPreflight"`
	PreflightCommitment level      `json:"preflightCommitment"`
	Encoding            base64Only `json:"encoding"`
	MinContextSlot      *uint64    `json:"minContextSlot"`
}

func (c *call) sendTransaction(p params) (any, error) {
	var raw []byte
	var cfg sendConfig
	if err := p.read(1, &raw, &cfg); err != nil {
		return nil, err
	}
	at := contextConfig{Commitment: cfg.PreflightCommitment, MinContextSlot: cfg.MinContextSlot}
	if cfg.SkipPreflight {
		at.Commitment = level(bank.Processed)
	}
	tx, err := c.decode(raw, at)
	if err != nil {
		return nil, err
	}
	verified := tx.VerifySignatures()
	if !cfg.SkipPreflight {
		if err := c.preflight(tx, bank.Commitment(cfg.PreflightCommitment), verified); err != nil {
			return nil, err
		}
	}
	// Like a node that forwards to a leader, answer with the signature in any
	// case: a transaction that cannot land is dropped. It executes now or never,
	// so maxRetries has no effect.
	if verified && !c.plan.Drop {
		landed, outcome := c.bank.Submit(tx)
		c.log.Debug("Transaction received", "landed", landed, "failed", outcome != nil)
	}
	return tx.Signature(), nil
}

// decode reads a transaction and resolves its lookup tables at the commitment
// level. A node refuses one that it cannot resolve as malformed, with or
// without preflight.
func (c *call) decode(raw []byte, at contextConfig) (tx *bank.Transaction, err error) {
	if len(raw) > bank.MaxTransactionSize {
		return nil, invalidParams("decoded %s too large: %d bytes (max: %d bytes)", versionedTransaction, len(raw), bank.MaxTransactionSize)
	}
	var broken *bank.TransactionError
	if tx, err = bank.DecodeTransaction(raw); errors.As(err, &broken) {
		return nil, errInvalidTransaction(broken)
	}
	if err != nil {
		return nil, invalidParams("failed to deserialize %s: %v", versionedTransaction, err)
	}
	if _, err := c.read(at, func(v view) (any, error) { tx, broken = v.Resolve(tx); return nil, nil }); err != nil {
		return nil, err
	}
	if broken != nil {
		return nil, errInvalidTransaction(broken)
	}
	return tx, nil
}

// preflight refuses what would fail at the commitment level.
func (c *call) preflight(tx *bank.Transaction, at bank.Commitment, verified bool) error {
	if !verified {
		return errSignatureFailure()
	}
	if behind := c.health(); behind > 0 {
		return errNodeBehind(behind)
	}
	sim, result := c.simulate(tx, at, false)
	message := ""
	switch {
	case c.plan.Outcome == fault.OutcomeFails:
		message = c.plan.Err
	case c.plan.Outcome == "" && sim.Meta.Err != nil:
		message = sim.Meta.Err.Error()
	default:
		return nil
	}
	return &Error{Code: codePreflightFailure, Message: "Transaction simulation failed: " + message, Data: result}
}

type simulateConfig struct {
	contextConfig
	SigVerify              bool       `json:"sigVerify"`
	ReplaceRecentBlockhash bool       `json:"replaceRecentBlockhash"`
	Encoding               base64Only `json:"encoding"`
}

func (c *call) simulateTransaction(p params) (any, error) {
	var raw []byte
	var cfg simulateConfig
	if err := p.read(1, &raw, &cfg); err != nil {
		return nil, err
	}
	if cfg.SigVerify && cfg.ReplaceRecentBlockhash {
		return nil, invalidParams("sigVerify may not be used with replaceRecentBlockhash")
	}
	tx, err := c.decode(raw, cfg.contextConfig)
	if err != nil {
		return nil, err
	}
	if cfg.SigVerify && !tx.VerifySignatures() {
		return nil, errSignatureFailure()
	}
	sim, result := c.simulate(tx, bank.Commitment(cfg.Commitment), cfg.ReplaceRecentBlockhash)
	if cfg.ReplaceRecentBlockhash {
		result["replacementBlockhash"] = map[string]any{"blockhash": sim.Blockhash, "lastValidBlockHeight": sim.LastValidHeight}
	}
	return answerAt(sim.Slot, result), nil
}

// simulate runs a transaction on the state at a commitment level. The reported
// outcome is in the result, which may be false, and not in the simulation.
func (c *call) simulate(tx *bank.Transaction, at bank.Commitment, replaceBlockhash bool) (sim *bank.Simulation, result map[string]any) {
	sim = c.bank.Behind(c.plan.Lag).Simulate(tx, at, replaceBlockhash)
	sim.Slot += c.plan.Ahead
	result = map[string]any{
		"err": sim.Meta.Err, "logs": sim.Meta.Logs, "unitsConsumed": sim.Meta.Units,
		"accounts": nil, "returnData": nil, "innerInstructions": nil, "replacementBlockhash": nil,
	}
	if c.plan.Outcome != "" {
		result["err"] = c.errClaimed()
	}
	if c.plan.Outcome == fault.OutcomeSucceeds && sim.Meta.Err != nil {
		result["unitsConsumed"], result["logs"] = claimedUnits, []string{}
	}
	return sim, result
}
