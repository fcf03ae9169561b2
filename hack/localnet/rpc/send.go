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
	config := contextConfig{Commitment: cfg.PreflightCommitment, MinContextSlot: cfg.MinContextSlot}
	if cfg.SkipPreflight {
		config.Commitment = level(bank.Processed)
	}
	tx, err := c.decode(raw, config)
	if err != nil {
		return nil, err
	}
	verified := tx.VerifySignatures()
	if !cfg.SkipPreflight {
		if err := c.preflight(tx, bank.Commitment(cfg.PreflightCommitment), verified); err != nil {
			return nil, err
		}
	}
	// A node forwards a transaction to the leader and answers with the signature,
	// whether the transaction can land or not. Here it executes, waits for a block or
	// is dropped at once, so that maxRetries has no effect.
	if verified && !c.plan.Drop {
		landed, outcome := c.bank.Submit(tx)
		c.log.Debug("transaction received", "landed", landed, "failed", outcome != nil)
	}
	return tx.Signature(), nil
}

// decode reads a transaction and resolves its lookup tables at the commitment
// level. With or without preflight, a transaction with a table that does not
// resolve is an invalid transaction, as on a node.
func (c *call) decode(raw []byte, config contextConfig) (tx *bank.Transaction, err error) {
	if most := bank.MaxSize(raw); len(raw) > most {
		return nil, invalidParams("decoded %s too large: %d bytes (max: %d bytes)", versionedTransaction, len(raw), most)
	}
	var broken *bank.TransactionError
	if tx, err = bank.DecodeTransaction(raw); errors.As(err, &broken) {
		return nil, errInvalidTransaction(broken)
	}
	if err != nil {
		return nil, invalidParams("failed to deserialize %s: %v", versionedTransaction, err)
	}
	if _, err := c.read(config, func(v view) (any, error) { tx, broken = v.Resolve(tx); return nil, nil }); err != nil {
		return nil, err
	}
	if broken != nil {
		return nil, errInvalidTransaction(broken)
	}
	return tx, nil
}

// preflight returns the error of a transaction that would fail at the commitment
// level, or that the endpoint's faults fail.
func (c *call) preflight(tx *bank.Transaction, commitment bank.Commitment, verified bool) error {
	if !verified {
		return errSignatureFailure()
	}
	if behind := c.unhealthyLag(); behind > 0 {
		return errNodeBehind(behind)
	}
	sim, result := c.simulate(tx, commitment, false)
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

// getFeeForMessage answers with the fee in lamports, or null for a blockhash that is not valid.
func (c *call) getFeeForMessage(p params) (any, error) {
	var message []byte
	var cfg contextConfig
	if err := p.read(1, &message, &cfg); err != nil {
		return nil, err
	}
	tx, err := c.decode(bank.WithoutSignatures(message), cfg)
	if err != nil {
		return nil, err
	}
	budget, refusal := tx.Budget()
	if refusal != nil {
		return nil, invalidParams("invalid message: %v", refusal)
	}
	return c.read(cfg, func(v view) (any, error) {
		if !v.ValidBlockhash(tx.RecentBlockhash) {
			return answerAt(v.Slot(), nil), nil
		}
		return answerAt(v.Slot(), budget.Fee(len(tx.Signatures))), nil
	})
}

// simulate runs a transaction on the state at a commitment level. sim has the true outcome. result
// is the answer to the client: under the fault outcome it has a false outcome.
func (c *call) simulate(tx *bank.Transaction, commitment bank.Commitment, replaceBlockhash bool) (sim *bank.Simulation, result map[string]any) {
	sim = c.bank.Behind(c.plan.Lag).Simulate(tx, commitment, replaceBlockhash)
	sim.Slot += c.plan.Ahead
	result = map[string]any{
		"err": sim.Meta.Err, "logs": sim.Meta.Logs, "unitsConsumed": sim.Meta.Units, "loadedAccountsDataSize": sim.Meta.LoadedData,
		"accounts": nil, "returnData": nil, "innerInstructions": nil, "replacementBlockhash": nil,
	}
	if c.plan.Outcome != "" {
		result["err"] = c.claimedError()
	}
	if c.plan.Outcome == fault.OutcomeSucceeds && sim.Meta.Err != nil {
		result["unitsConsumed"], result["logs"] = claimedUnits, []string{}
	}
	return sim, result
}
