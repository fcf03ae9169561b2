package rpc

import (
	"encoding/json"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/localnet/bank"
)

const (
	maxStatuses   = 256
	maxSignatures = 1000
)

type signatureStatus struct {
	Slot               uint64  `json:"slot"`
	Confirmations      *uint64 `json:"confirmations"`
	Err                any     `json:"err"`
	Status             any     `json:"status"`
	ConfirmationStatus string  `json:"confirmationStatus"`
}

func (c *call) getSignatureStatuses(p params) (any, *Error) {
	if err := p.want(1, 2); err != nil {
		return nil, err
	}
	var texts []string
	if err := p.decode(0, &texts); err != nil {
		return nil, err
	}
	if len(texts) > maxStatuses {
		return nil, invalidParams("Too many inputs provided; max %d", maxStatuses)
	}
	var cfg struct {
		SearchTransactionHistory bool `json:"searchTransactionHistory"`
	}
	if err := p.decode(1, &cfg); err != nil {
		return nil, err
	}
	signatures := make([]solana.Signature, len(texts))
	for i, text := range texts {
		signature, err := parseSignature(text)
		if err != nil {
			return nil, err
		}
		signatures[i] = signature
	}
	values := make([]*signatureStatus, len(signatures))
	var slot uint64
	c.readAt(bank.Processed, func(v view) {
		slot = v.Slot()
		for i, signature := range signatures {
			if status := v.Status(signature); status != nil && (status.Recent || cfg.SearchTransactionHistory) {
				values[i] = encodeStatus(status)
			}
		}
	})
	if c.plan.Outcome != "" {
		c.claimFinal(values)
	}
	return answerAt(slot, values), nil
}

// claimFinal says of all signatures that they are final with the outcome of
// which the node lies: those that never landed in the newest finalized slot.
func (c *call) claimFinal(values []*signatureStatus) {
	var slot uint64
	c.readAt(bank.Finalized, func(v view) { slot = v.Slot() })
	status := map[string]any{"Ok": nil}
	if err := c.errClaimed(); err != nil {
		status = map[string]any{"Err": err}
	}
	for i, value := range values {
		claimed := signatureStatus{Slot: slot, Err: c.errClaimed(), Status: status, ConfirmationStatus: bank.Finalized.String()}
		if value != nil {
			claimed.Slot = value.Slot
		}
		values[i] = &claimed
	}
}

func encodeStatus(status *bank.Status) *signatureStatus {
	out := &signatureStatus{
		Slot: status.Block.Slot, Err: status.Meta.Err,
		Status: deprecatedStatus(status.Meta.Err), ConfirmationStatus: status.Commitment.String(),
	}
	if status.Commitment != bank.Finalized {
		out.Confirmations = &status.Confirmations
	}
	return out
}

// deprecatedStatus is the older form of an outcome, which stands beside err.
func deprecatedStatus(err *bank.TransactionError) any {
	if err != nil {
		return map[string]any{"Err": err}
	}
	return map[string]any{"Ok": nil}
}

func (c *call) getSignaturesForAddress(p params) (any, *Error) {
	if err := p.want(1, 2); err != nil {
		return nil, err
	}
	address, err := p.key()
	if err != nil {
		return nil, err
	}
	cfg := struct {
		contextConfig
		Limit  *int    `json:"limit"`
		Before *string `json:"before"`
		Until  *string `json:"until"`
	}{}
	if err := p.decode(1, &cfg); err != nil {
		return nil, err
	}
	if err := cfg.settled(); err != nil {
		return nil, err
	}
	query := bank.AddressQuery{Address: address, Limit: maxSignatures}
	if cfg.Limit != nil {
		query.Limit = *cfg.Limit
	}
	if query.Limit < 1 || query.Limit > maxSignatures {
		return nil, invalidParams("Invalid limit; max %d", maxSignatures)
	}
	if cfg.Before != nil {
		if query.Before, err = parseSignature(*cfg.Before); err != nil {
			return nil, err
		}
	}
	if cfg.Until != nil {
		if query.Until, err = parseSignature(*cfg.Until); err != nil {
			return nil, err
		}
	}
	found := []map[string]any{}
	err = c.read(cfg.contextConfig, func(v view) {
		for _, status := range v.ByAddress(query) {
			found = append(found, map[string]any{
				"signature":          status.Signature().String(),
				"slot":               status.Block.Slot,
				"err":                status.Meta.Err,
				"memo":               nil,
				"blockTime":          status.Block.Time,
				"confirmationStatus": status.Commitment.String(),
			})
		}
	})
	return found, err
}

// historyConfig is the configuration of getTransaction and getBlock, which may
// also be given as an encoding alone.
type historyConfig struct {
	contextConfig
	Encoding                       encoding `json:"encoding"`
	MaxSupportedTransactionVersion *uint8   `json:"maxSupportedTransactionVersion"`
	TransactionDetails             string   `json:"transactionDetails"`
	Rewards                        *bool    `json:"rewards"`
}

func (p params) history(i int) (historyConfig, *Error) {
	cfg := historyConfig{Encoding: encodingJSON, TransactionDetails: "full"}
	var err *Error
	if i < len(p) && json.Unmarshal(p[i], new(string)) == nil {
		err = p.decode(i, &cfg.Encoding)
	} else {
		err = p.decode(i, &cfg)
	}
	if err == nil {
		err = cfg.settled()
	}
	switch cfg.Encoding {
	case encodingJSON, encodingBase64, encodingBase58:
		return cfg, err
	default:
		return cfg, invalidParams("Invalid params: encoding `%s` of transactions is not served here, expected one of `json`, `base64`, `base58`", cfg.Encoding)
	}
}

func (c *call) getTransaction(p params) (any, *Error) {
	if err := p.want(1, 2); err != nil {
		return nil, err
	}
	var text string
	if err := p.decode(0, &text); err != nil {
		return nil, err
	}
	signature, err := parseSignature(text)
	if err != nil {
		return nil, err
	}
	cfg, err := p.history(1)
	if err != nil {
		return nil, err
	}
	var landed *bank.Landed
	if err := c.read(cfg.contextConfig, func(v view) { landed = v.Transaction(signature) }); err != nil {
		return nil, err
	}
	if landed == nil {
		return nil, nil
	}
	out, err := encodeLanded(landed, cfg)
	if err != nil {
		return nil, err
	}
	out["slot"] = landed.Block.Slot
	out["blockTime"] = landed.Block.Time
	return out, nil
}
