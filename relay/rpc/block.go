package rpc

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/relaypool/relaypool/relay/onchain"
)

// Blocks lists the slots that have a confirmed block, between from and to, both included. RPC
// nodes limit the range to 500 000 slots.
func (c *Client) Blocks(ctx context.Context, from, to uint64) ([]uint64, error) {
	return read[[]uint64](ctx, c, "getBlocks", from, to, committed(onchain.Confirmed))
}

// Block reads the transactions that name the account, from the confirmed block of the slot. Only a
// block shows the order of transactions within a slot. Block fails with onchain.ErrSlotSkipped when
// the slot has no block, and with onchain.ErrBlockPruned when the endpoint no longer has the block.
//
// A block is megabytes long, and a pool's transactions are a small part of it. So the block is
// decoded while it arrives. Other transactions are not decoded, only searched for the account's
// bytes.
func (c *Client) Block(ctx context.Context, slot uint64, account solana.PublicKey) (*onchain.Block, error) {
	const method = "getBlock"
	var r *blockReader
	err := c.anyVersion(func(version int64) error {
		r = &blockReader{Block: onchain.Block{Slot: slot}, account: account[:], base58: []byte(account.String())}
		return c.call(ctx, method, []any{slot, config{
			"encoding": "base64", "transactionDetails": "full", "rewards": false,
			"commitment": onchain.Confirmed, "maxSupportedTransactionVersion": version,
		}}, r.decode)
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, Ended(ctx, method)
	case err != nil:
		return nil, err
	case !r.hasParent || r.Hash.IsZero() || !r.hasTransactions:
		return nil, onchain.Malformed(method, "blockhash, parentSlot or transactions are missing")
	}
	r.datePayments()
	return &r.Block, nil
}

// blockReader decodes a block. Its buffers are reused for each transaction.
type blockReader struct {
	onchain.Block
	hasParent, hasTransactions bool
	at                         time.Time // zero when the endpoint does not report it
	account, base58            []byte    // the account's bytes, and their base58 text

	raw, quoted []byte
	meta        jsontext.Value
}

func (r *blockReader) decode(d *jsontext.Decoder) error {
	return members(d, func(name string) error {
		switch name {
		case "blockhash":
			return json.UnmarshalDecode(d, &r.Hash)
		case "previousBlockhash":
			return json.UnmarshalDecode(d, &r.ParentHash)
		case "blockTime":
			return r.time(d)
		case "parentSlot":
			r.hasParent = true
			return json.UnmarshalDecode(d, &r.Parent)
		case "transactions":
			r.hasTransactions = true
			return r.transactions(d)
		default:
			return d.SkipValue()
		}
	})
}

func (r *blockReader) transactions(d *jsontext.Decoder) error {
	if t, err := d.ReadToken(); err != nil || t.Kind() != '[' {
		return errors.Join(err, errors.New("transactions are not a list"))
	}
	for n := 0; d.PeekKind() != ']'; n++ {
		if err := r.transaction(d); err != nil {
			var syntax *jsontext.SyntacticError
			if errors.As(err, &syntax) {
				return err
			}
			return onchain.Malformed("getBlock", "transaction %d: %v", n, err)
		}
	}
	_, err := d.ReadToken()
	return err
}

// transaction reads one transaction, and adds it to the block if it names the account.
func (r *blockReader) transaction(d *jsontext.Decoder) error {
	r.raw, r.meta = r.raw[:0], r.meta[:0]
	err := members(d, func(name string) error {
		switch name {
		case "transaction":
			return r.bytes(d)
		case "meta":
			v, err := d.ReadValue()
			// Keep the meta: Agave sends it before the transaction's bytes, and only the bytes show
			// whether the meta is needed.
			r.meta = append(r.meta[:0], v...)
			return err
		default:
			return d.SkipValue()
		}
	})
	switch {
	case err != nil:
		return err
	case len(r.raw) == 0 || r.meta.Kind() != '{':
		return errors.New("base64 bytes or meta are missing")
	}
	if r.skip() {
		return nil
	}
	tx, err := decodeTransaction(bytes.Clone(r.raw)) // the result keeps parts of the bytes
	if err != nil {
		return fmt.Errorf("it may name account %s: %w", r.base58, err)
	}
	var m wireMeta
	if err := json.Unmarshal(r.meta, &m, lenient); err != nil {
		return errors.New("meta is malformed")
	}
	resolved, err := tx.resolve(&m)
	if n := len(resolved.keys); err == nil && m.Fee != nil && len(m.Pre) == n && len(m.Post) == n {
		paid := transaction{resolvedTransaction: resolved, slot: r.Slot, fee: *m.Fee, pre: m.Pre, post: m.Post}
		resolved.Payment = paid.payment(resolved.FeePayer)
	}
	r.Transactions = append(r.Transactions, resolved.BlockTransaction)
	return err
}

// time reads the block's time, if there is one.
func (r *blockReader) time(d *jsontext.Decoder) error {
	v, err := d.ReadValue()
	var unix int64
	if err == nil && v.Kind() == '0' && json.Unmarshal(v, &unix) == nil {
		r.at = time.Unix(unix, 0).UTC()
	}
	return err
}

// datePayments sets the time of the payments, which may come before it in the block. Without a time there are
// no payments: getTransaction may know it later.
func (r *blockReader) datePayments() {
	for i := range r.Transactions {
		switch tx := &r.Transactions[i]; {
		case r.at.IsZero():
			tx.Payment = nil
		case tx.Payment != nil:
			tx.Payment.At = r.at
		}
	}
}

// bytes reads a transaction's bytes from a list of two strings: the encoded bytes, and the name of
// the encoding.
func (r *blockReader) bytes(d *jsontext.Decoder) error {
	if t, err := d.ReadToken(); err != nil || t.Kind() != '[' {
		return errors.Join(err, errors.New("base64 bytes are missing"))
	}
	v, err := d.ReadValue()
	if err != nil {
		return err
	}
	text, err := r.unquote(v)
	if err != nil {
		return errors.New("bytes are not base64")
	}
	if r.raw, err = base64.StdEncoding.AppendDecode(r.raw[:0], text); err != nil {
		return errors.New("bytes are not base64")
	}
	if v, err = d.ReadValue(); err != nil {
		return err
	}
	if string(v) != `"base64"` {
		return errors.New("bytes are not base64")
	}
	_, err = d.ReadToken()
	return err
}

// unquote returns the text of a JSON string. The text is valid until the next call. If the string
// has no escape, the text is a part of v and not a copy.
func (r *blockReader) unquote(v jsontext.Value) (text []byte, err error) {
	if v.Kind() == '"' && bytes.IndexByte(v, '\\') < 0 {
		return v[1 : len(v)-1], nil
	}
	r.quoted, err = jsontext.AppendUnquote(r.quoted[:0], v)
	return r.quoted, err
}

// members reads an object. It calls member for each name, and member reads the value.
func members(d *jsontext.Decoder, member func(name string) error) error {
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return errors.Join(err, errors.New("no object"))
	}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return err
		}
		if err := member(name.String()); err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}
