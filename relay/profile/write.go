package profile

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gagliardetto/solana-go"
	"go.yaml.in/yaml/v3"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

// Marshal writes a profile out whole, so that Parse gives it back: nothing is
// left to its base. It refuses a profile that Validate does.
func Marshal(p *shieldpool.Profile) ([]byte, error) {
	if err := Validate(p); err != nil {
		return nil, fmt.Errorf("write profile: %w", err)
	}
	doc := mapping(
		"base", text(shieldpool.ShieldPoolV1().Name), "name", text(p.Name), "programID", text(p.ProgramID.String()),
		"tags", mapping(
			"transact", integer(p.Tags.Transact), "transactSwap", integer(p.Tags.TransactSwap), "initialize", integer(p.Tags.Initialize),
			"prepareSwapSol", integer(p.Tags.PrepareSwapSol), "executeSwap", integer(p.Tags.ExecuteSwap), "closeSwapState", integer(p.Tags.CloseSwapState)),
		"seeds", mapping(
			"pool", seedList(p.Seeds.Pool), "merkleTree", seedList(p.Seeds.MerkleTree), "treasury", seedList(p.Seeds.Treasury),
			"nullifier", seedList(p.Seeds.Nullifier), "swapState", seedList(p.Seeds.SwapState)),
		"accounts", accountLists(&p.Accounts),
		"mints", mintList(p.Mints),
		"fees", mapping("base", integer(p.Fees.Base), "numerator", integer(p.Fees.Numerator), "denominator", integer(p.Fees.Denominator), "minDeposit", integer(p.Fees.MinDeposit)),
		"extData", text(string(p.ExtData)), "recipientMinimum", integer(p.RecipientMinimum), "swapTimeout", integer(p.SwapTimeout),
		"rootHistory", integer(p.RootHistory), "allowOffCurveRecipient", boolean(p.AllowOffCurveRecipient),
	)
	messages := list()
	for _, m := range p.SignInMessages {
		messages.Content = append(messages.Content, text(m))
	}
	names := mapping()
	for _, c := range slices.Sorted(maps.Keys(p.Errors)) {
		names.Content = append(names.Content, plain(hexCode(c)), text(p.Errors[c]))
	}
	ranges := list()
	for _, c := range p.Classes {
		ranges.Content = append(ranges.Content, flow(mapping("first", plain(hexCode(c.First)), "last", plain(hexCode(c.Last)), "class", text(string(c.Class)))))
	}
	doc.Content = append(doc.Content, plain("signInMessages"), messages, plain("errors"), names, plain("classes"), ranges)
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(doc); err != nil {
		return nil, fmt.Errorf("write profile: %w", err)
	}
	return out.Bytes(), nil
}

func hexCode(c uint32) string { return fmt.Sprintf("0x%x", c) }

func plain(value string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: value} }

// text is a scalar that is read as text, whatever it looks like.
func text(value string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(value)
	return n
}

func integer[T ~uint8 | ~uint64 | ~int](v T) *yaml.Node { return plain(fmt.Sprint(v)) }

func boolean(v bool) *yaml.Node { return plain(fmt.Sprint(v)) }

func list() *yaml.Node { return &yaml.Node{Kind: yaml.SequenceNode} }

// flow writes a small mapping on one line.
func flow(n *yaml.Node) *yaml.Node {
	n.Style = yaml.FlowStyle
	return n
}

// mapping is made of keys, which are strings, and their values, which are nodes.
func mapping(keysAndValues ...any) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for _, part := range keysAndValues {
		switch part := part.(type) {
		case string:
			n.Content = append(n.Content, plain(part))
		case *yaml.Node:
			n.Content = append(n.Content, part)
		}
	}
	return n
}

func seedList(seeds []shieldpool.Seed) *yaml.Node {
	out := list()
	for _, s := range seeds {
		if s.Value != "" {
			out.Content = append(out.Content, flow(mapping("value", text(string(s.Value)))))
		} else {
			out.Content = append(out.Content, flow(mapping("literal", text(s.Literal))))
		}
	}
	return out
}

func accountLists(a *shieldpool.AccountOrders) *yaml.Node {
	out := mapping()
	for _, i := range instructions(a) {
		order := list()
		for _, role := range *i.order {
			account := flow(mapping("role", text(string(role.Role))))
			if role.Signer {
				account.Content = append(account.Content, plain("signer"), boolean(true))
			}
			if role.Writable {
				account.Content = append(account.Content, plain("writable"), boolean(true))
			}
			order.Content = append(order.Content, account)
		}
		out.Content = append(out.Content, plain(i.name), order)
	}
	return out
}

func mintList(mints []shieldpool.Mint) *yaml.Node {
	out := list()
	for _, m := range mints {
		out.Content = append(out.Content, mapping("address", text(m.Address.String()), "field", text(hex.EncodeToString(m.Field[:]))))
	}
	return out
}

// ParseMints reads mints as a flag gives them: address=field, an address in
// base58 and 64 hexadecimal digits. Its errors do not repeat what they met.
func ParseMints(texts []string) ([]shieldpool.Mint, error) {
	var mints []shieldpool.Mint
	for i, t := range texts {
		address, digits, found := strings.Cut(t, "=")
		key, err := solana.PublicKeyFromBase58(address)
		value, ok := parseField(digits)
		if !found || err != nil || !ok {
			return nil, fmt.Errorf("mint %d of %d: expected address=field, an address in base58 and 64 hexadecimal digits, received %d characters that are not", i+1, len(texts), len(t))
		}
		mints = append(mints, shieldpool.Mint{Address: key, Field: value})
	}
	r := &reader{}
	r.validateMints(mints)
	if len(r.faults) > 0 {
		return nil, Problems(r.faults)
	}
	return mints, nil
}
