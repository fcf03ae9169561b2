package rpc

import (
	"encoding/base64"
	"errors"

	"github.com/gagliardetto/solana-go"
	"github.com/mr-tron/base58"

	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/hack/localnet/fault"
)

const versionedTransaction = "solana_transaction::versioned::VersionedTransaction"

type sendConfig struct {
	SkipPreflight       bool     `json:"skipPreflight"`
	PreflightCommitment level    `json:"preflightCommitment"`
	Encoding            encoding `json:"encoding"`
	MinContextSlot      *uint64  `json:"minContextSlot"`
}

func (c *call) sendTransaction(p params) (any, *Error) {
	if err := p.want(1, 2); err != nil {
		return nil, err
	}
	cfg := sendConfig{Encoding: encodingBase58}
	if err := p.decode(1, &cfg); err != nil {
		return nil, err
	}
	tx, err := p.transaction(0, cfg.Encoding)
	if err != nil {
		return nil, err
	}
	context := contextConfig{Commitment: cfg.PreflightCommitment, MinContextSlot: cfg.MinContextSlot}
	if cfg.SkipPreflight {
		context.Commitment = level(bank.Processed)
	}
	if tx, err = c.resolve(tx, context); err != nil {
		return nil, err
	}
	verified := tx.VerifySignatures()
	if !cfg.SkipPreflight {
		if err := c.preflight(tx, bank.Commitment(cfg.PreflightCommitment), verified); err != nil {
			return nil, err
		}
	}
	// Like a node that forwards to a leader, the answer is the signature
	// whatever becomes of the transaction: one that cannot land vanishes. It
	// executes now or never, so maxRetries has nothing to say.
	if verified && !c.plan.Drop {
		landed, outcome := c.bank.Submit(tx)
		c.log.Debug("Transaction received", "landed", landed, "failed", outcome != nil)
	}
	return tx.Signature().String(), nil
}

// resolve looks up at the commitment level what the transaction has from lookup
// tables. A node refuses one that it cannot resolve as malformed, with or
// without preflight.
func (c *call) resolve(tx *bank.Transaction, cfg contextConfig) (*bank.Transaction, *Error) {
	var broken *bank.TransactionError
	if err := c.read(cfg, func(v view) { tx, broken = v.Resolve(tx) }); err != nil {
		return nil, err
	}
	if broken != nil {
		return nil, errInvalidTransaction(broken)
	}
	return tx, nil
}

func errInvalidTransaction(broken *bank.TransactionError) *Error {
	return invalidParams("invalid transaction: %v", broken)
}

// preflight refuses what would fail at the commitment level.
func (c *call) preflight(tx *bank.Transaction, at bank.Commitment, verified bool) *Error {
	if !verified {
		return errSignatureFailure()
	}
	if behind := c.health(); behind > 0 {
		return errNodeBehind(behind)
	}
	var err *Error
	c.simulate(tx, at, false, func(sim *bank.Simulation, result map[string]any) {
		message := ""
		switch {
		case c.plan.Outcome == fault.OutcomeFails:
			message = c.plan.Err
		case c.plan.Outcome == "" && sim.Meta.Err != nil:
			message = sim.Meta.Err.Error()
		default:
			return
		}
		result["innerInstructions"] = nil
		err = &Error{Code: codePreflightFailure, Message: "Transaction simulation failed: " + message, Data: result}
	})
	return err
}

func errSignatureFailure() *Error {
	return &Error{Code: codeSignatureFailure, Message: "Transaction signature verification failure"}
}

// transaction decodes parameter i.
func (p params) transaction(i int, as encoding) (*bank.Transaction, *Error) {
	var text string
	if err := p.decode(i, &text); err != nil {
		return nil, err
	}
	var raw []byte
	var err error
	switch as {
	case encodingBase58:
		raw, err = base58.Decode(text)
	case encodingBase64:
		raw, err = base64.StdEncoding.DecodeString(text)
	default:
		return nil, invalidParams("unsupported encoding: %s. Supported encodings: base58, base64", as)
	}
	if err != nil {
		return nil, invalidParams("invalid %s encoding: not %s of a transaction", as, as)
	}
	if len(raw) > bank.MaxTransactionSize {
		return nil, invalidParams("decoded %s too large: %d bytes (max: %d bytes)",
			versionedTransaction, len(raw), bank.MaxTransactionSize)
	}
	tx, err := bank.DecodeTransaction(raw)
	var broken *bank.TransactionError
	if errors.As(err, &broken) {
		return nil, errInvalidTransaction(broken)
	}
	if err != nil {
		return nil, invalidParams("failed to deserialize %s: %v", versionedTransaction, err)
	}
	return tx, nil
}

type simulateConfig struct {
	contextConfig
	SigVerify              bool     `json:"sigVerify"`
	ReplaceRecentBlockhash bool     `json:"replaceRecentBlockhash"`
	InnerInstructions      bool     `json:"innerInstructions"`
	Encoding               encoding `json:"encoding"`
	Accounts               *struct {
		Encoding  encoding `json:"encoding"`
		Addresses []string `json:"addresses"`
	} `json:"accounts"`
}

func (c *call) simulateTransaction(p params) (any, *Error) {
	if err := p.want(1, 2); err != nil {
		return nil, err
	}
	cfg := simulateConfig{Encoding: encodingBase58}
	if err := p.decode(1, &cfg); err != nil {
		return nil, err
	}
	if cfg.SigVerify && cfg.ReplaceRecentBlockhash {
		return nil, invalidParams("sigVerify may not be used with replaceRecentBlockhash")
	}
	tx, err := p.transaction(0, cfg.Encoding)
	if err != nil {
		return nil, err
	}
	if tx, err = c.resolve(tx, cfg.contextConfig); err != nil {
		return nil, err
	}
	if cfg.SigVerify && !tx.VerifySignatures() {
		return nil, errSignatureFailure()
	}
	var result answer
	c.simulate(tx, bank.Commitment(cfg.Commitment), cfg.ReplaceRecentBlockhash, func(sim *bank.Simulation, value map[string]any) {
		if !cfg.InnerInstructions {
			value["innerInstructions"] = nil
		}
		if cfg.ReplaceRecentBlockhash {
			value["replacementBlockhash"] = map[string]any{
				"blockhash": sim.Blockhash.String(), "lastValidBlockHeight": sim.LastValidHeight,
			}
		}
		value["accounts"], err = cfg.accountsOf(tx, sim)
		result = answerAt(sim.Slot, value)
	})
	return result, err
}

// accountsOf encodes the accounts that the configuration asks for, as the
// transaction would leave them; null when it asks for none.
func (c *simulateConfig) accountsOf(tx *bank.Transaction, sim *bank.Simulation) (any, *Error) {
	if c.Accounts == nil {
		return nil, nil
	}
	if len(c.Accounts.Addresses) > len(tx.Keys) {
		return nil, invalidParams("Too many accounts provided; max %d", len(tx.Keys))
	}
	as := c.Accounts.Encoding
	switch as {
	case "":
		as = encodingBase64
	case encodingBinary, encodingBase58:
		return nil, invalidParams("base58 encoding not supported")
	}
	keys, err := parseKeys(c.Accounts.Addresses)
	if err != nil {
		return nil, err
	}
	out := make([]any, len(keys))
	if sim.Meta.Err != nil {
		return out, nil // a failed transaction leaves no accounts
	}
	for i, key := range keys {
		if out[i], err = encodeAccount(sim.Account(key), as, nil, sim.Account); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func simulationResult(sim *bank.Simulation) map[string]any {
	return map[string]any{
		"err":                  sim.Meta.Err,
		"logs":                 sim.Meta.Logs,
		"accounts":             nil,
		"unitsConsumed":        sim.Meta.Units,
		"returnData":           encodeReturnData(sim.Meta.ReturnData),
		"innerInstructions":    encodeInner(sim.Meta.Inner),
		"replacementBlockhash": nil,
	}
}

func (c *call) requestAirdrop(p params) (any, *Error) {
	if err := p.want(2, 3); err != nil {
		return nil, err
	}
	to, err := p.key()
	if err != nil {
		return nil, err
	}
	var lamports uint64
	if err := p.decode(1, &lamports); err != nil {
		return nil, err
	}
	var signature solana.Signature
	signature, airdropErr := c.airdrop(to, lamports)
	if airdropErr != nil {
		return nil, &Error{Code: codeInternal, Message: "Internal error: " + airdropErr.Error()}
	}
	return signature.String(), nil
}
