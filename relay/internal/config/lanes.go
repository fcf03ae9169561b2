package config

import (
	"slices"
	"strconv"

	"github.com/gagliardetto/solana-go"
	"go.yaml.in/yaml/v3"
)

// TipAlways is the value of a tip's use with which all transactions pay it. TipUrgent is the
// default: only urgent transactions pay it.
const (
	TipAlways = "always"
	TipUrgent = "urgent"
)

const (
	// maxTipAccounts bounds the list of a lane's tip accounts; services have about ten.
	maxTipAccounts = 32
	// maxTip bounds a tip, in lamports: 0.1 SOL, so that a slip of a digit costs no fortune.
	maxTip = 100_000_000
)

// Tip makes an endpoint a lane: a service that puts transactions on the chain for a tip.
type Tip struct {
	// Accounts are the accounts that receive tips. Each transaction tips one of them.
	Accounts []solana.PublicKey
	// MinLamports is the first tip of a submission; each tip in vain doubles the next, up to
	// MaxLamports.
	MinLamports, MaxLamports uint64
	// Always is true if all transactions pay the tip, not only urgent ones.
	Always bool
}

// IsLane reports whether the endpoint is a lane, which is sent transactions with a tip and is
// asked nothing.
func (e Endpoint) IsLane() bool { return e.Tip != nil }

// tip reads the value of the key tip.
func (p *endpointParser) tip(n *yaml.Node) {
	t := &Tip{}
	p.endpoint.Tip = t
	if n.Kind != yaml.MappingNode {
		p.fault("tip: expected accounts, minLamports, maxLamports and perhaps use")
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i].Value, n.Content[i+1]
		switch key {
		case "accounts":
			p.tipAccounts(value)
		case "minLamports":
			t.MinLamports = p.tipLamports(key, value)
		case "maxLamports":
			t.MaxLamports = p.tipLamports(key, value)
		case "use":
			if t.Always = value.Value == TipAlways; !t.Always && value.Value != TipUrgent {
				p.fault("tip: use has %d characters: expected %s or %s", len(value.Value), TipAlways, TipUrgent)
			}
		default:
			p.fault("tip: a key of %d characters is not known: expected accounts, minLamports, maxLamports or use", len(key))
		}
	}
	switch {
	case len(t.Accounts) == 0:
		p.fault("tip: accounts is missing: list the addresses to which the service wants its tips")
	case t.MinLamports == 0 || t.MaxLamports == 0:
		p.fault("tip: minLamports and maxLamports are needed: expected the service's smallest tip, and the most that one transaction may pay")
	case t.MinLamports > t.MaxLamports:
		p.fault("tip: minLamports is above maxLamports: lower it, or raise maxLamports")
	}
}

func (p *endpointParser) tipAccounts(n *yaml.Node) {
	if n.Kind != yaml.SequenceNode || len(n.Content) > maxTipAccounts {
		p.fault("tip: accounts is not a list of 1 to %d addresses", maxTipAccounts)
		return
	}
	for i, item := range n.Content {
		account, err := solana.PublicKeyFromBase58(item.Value)
		switch {
		case err != nil:
			p.fault("tip: account %d of %d has %d characters: expected an address in base58", i+1, len(n.Content), len(item.Value))
		case slices.Contains(p.endpoint.Tip.Accounts, account):
			p.fault("tip: account %d of %d is there twice", i+1, len(n.Content))
		default:
			p.endpoint.Tip.Accounts = append(p.endpoint.Tip.Accounts, account)
		}
	}
}

func (p *endpointParser) tipLamports(key string, n *yaml.Node) uint64 {
	lamports, err := strconv.ParseUint(n.Value, 10, 64)
	if err != nil || lamports < 1 || lamports > maxTip {
		p.fault("tip: %s: expected 1 to %d lamports", key, maxTip)
		return 0
	}
	return lamports
}
