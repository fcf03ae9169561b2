package shieldpool

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"
)

// MarshalProfile writes a profile with all its keys, so that ParseProfile takes nothing from the
// base and returns the same profile. It refuses an invalid profile.
func MarshalProfile(p *Profile) ([]byte, error) {
	if err := ValidateProfile(p); err != nil {
		return nil, fmt.Errorf("write profile: %w", err)
	}
	doc := yamlMapping(
		"base", yamlText(ShieldPoolV1().Name), "name", yamlText(p.Name), "programID", yamlText(p.ProgramID.String()),
		"tags", yamlMapping(
			"transact", yamlInteger(p.Tags.Transact), "transactSwap", yamlInteger(p.Tags.TransactSwap), "initialize", yamlInteger(p.Tags.Initialize),
			"prepareSwapSol", yamlInteger(p.Tags.PrepareSwapSol), "executeSwap", yamlInteger(p.Tags.ExecuteSwap), "closeSwapState", yamlInteger(p.Tags.CloseSwapState)),
		"seeds", yamlMapping(
			"pool", seedList(p.Seeds.Pool), "merkleTree", seedList(p.Seeds.MerkleTree), "treasury", seedList(p.Seeds.Treasury),
			"nullifier", seedList(p.Seeds.Nullifier), "swapState", seedList(p.Seeds.SwapState)),
		"accounts", accountLists(&p.Accounts),
		"mints", mintList(p.Mints),
		"fees", yamlMapping("base", yamlInteger(p.Fees.Base), "numerator", yamlInteger(p.Fees.Numerator), "denominator", yamlInteger(p.Fees.Denominator), "minDeposit", yamlInteger(p.Fees.MinDeposit)),
		"extData", yamlText(string(p.ExtData)), "recipientMinimum", yamlInteger(p.RecipientMinimum), "swapTimeout", yamlInteger(p.SwapTimeout),
		"rootHistory", yamlInteger(p.RootHistory), "allowOffCurveRecipient", yamlBoolean(p.AllowOffCurveRecipient),
		"refusesV1", yamlBoolean(p.RefusesV1),
	)
	messages := yamlList()
	for _, m := range p.SignInMessages {
		messages.Content = append(messages.Content, yamlText(m))
	}
	names := yamlMapping()
	for _, c := range slices.Sorted(maps.Keys(p.Errors)) {
		names.Content = append(names.Content, plainScalar(hexCode(c)), yamlText(p.Errors[c]))
	}
	ranges := yamlList()
	for _, c := range p.Classes {
		ranges.Content = append(ranges.Content, yamlFlow(yamlMapping("first", plainScalar(hexCode(c.First)), "last", plainScalar(hexCode(c.Last)), "class", yamlText(string(c.Class)))))
	}
	doc.Content = append(doc.Content, plainScalar("signInMessages"), messages, plainScalar("errors"), names, plainScalar("classes"), ranges)
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(doc); err != nil {
		return nil, fmt.Errorf("write profile: %w", err)
	}
	return out.Bytes(), nil
}

func hexCode(c uint32) string { return fmt.Sprintf("0x%x", c) }

func plainScalar(value string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: value} }

// yamlText returns a scalar that is always read as text.
func yamlText(value string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(value)
	return n
}

func yamlInteger[T ~uint8 | ~uint64 | ~int](v T) *yaml.Node { return plainScalar(fmt.Sprint(v)) }

func yamlBoolean(v bool) *yaml.Node { return plainScalar(fmt.Sprint(v)) }

func yamlList() *yaml.Node { return &yaml.Node{Kind: yaml.SequenceNode} }

// yamlFlow makes the encoder write a small mapping on one line.
func yamlFlow(n *yaml.Node) *yaml.Node {
	n.Style = yaml.FlowStyle
	return n
}

// yamlMapping makes a mapping of alternating keys, which are strings, and values, which are
// nodes.
func yamlMapping(keysAndValues ...any) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for _, part := range keysAndValues {
		switch part := part.(type) {
		case string:
			n.Content = append(n.Content, plainScalar(part))
		case *yaml.Node:
			n.Content = append(n.Content, part)
		}
	}
	return n
}

func seedList(seeds []Seed) *yaml.Node {
	out := yamlList()
	for _, s := range seeds {
		if s.Value != "" {
			out.Content = append(out.Content, yamlFlow(yamlMapping("value", yamlText(string(s.Value)))))
		} else {
			out.Content = append(out.Content, yamlFlow(yamlMapping("literal", yamlText(s.Literal))))
		}
	}
	return out
}

func accountLists(a *AccountOrders) *yaml.Node {
	out := yamlMapping()
	for _, i := range profileInstructions(a) {
		order := yamlList()
		for _, role := range *i.order {
			account := yamlFlow(yamlMapping("role", yamlText(string(role.Role))))
			if role.Signer {
				account.Content = append(account.Content, plainScalar("signer"), yamlBoolean(true))
			}
			if role.Writable {
				account.Content = append(account.Content, plainScalar("writable"), yamlBoolean(true))
			}
			order.Content = append(order.Content, account)
		}
		out.Content = append(out.Content, plainScalar(i.name), order)
	}
	return out
}

func mintList(mints []Mint) *yaml.Node {
	out := yamlList()
	for _, m := range mints {
		out.Content = append(out.Content, yamlMapping("address", yamlText(m.Address.String()), "field", yamlText(hex.EncodeToString(m.Field[:]))))
	}
	return out
}
