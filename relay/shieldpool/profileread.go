package shieldpool

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	// maxBytes bounds a document. The built-in profiles have five kilobytes.
	maxBytes = 1 << 20
	// MaxMints is the largest number of mints of a profile.
	MaxMints = 16
	// MinRootHistory is the smallest rootHistory: one Transact adds two roots.
	MinRootHistory = 2
	// MaxRootHistory is the largest rootHistory that fits an account of ten megabytes.
	MaxRootHistory = 300_000

	maxName, maxMessage, maxMessages      = 64, 1024, 8
	maxAccounts, maxSeeds, maxSeedLiteral = 64, 16, 32
	maxCodes                              = 4096
)

// ProfileProblems lists everything that is wrong with a profile, without repeating values.
type ProfileProblems []error

// Error lists the problems.
func (p ProfileProblems) Error() string {
	texts := make([]string, len(p))
	for i, err := range p {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

// Unwrap returns the problems.
func (p ProfileProblems) Unwrap() []error { return p }

// ParseProfile reads a profile from YAML or JSON. Its error is ProfileProblems, which lists all
// problems at once, each with the path of its key.
//
//	base: shield-pool-v1
//	name: my-pool
//	programID: c1oak6tetxYnNfvXKFkpn1d98FxtK7B68vBQLYQpWKp
//	rootHistory: 128
//	tags: {transact: 2}
//	accounts:
//	  transact:
//	    - {role: payer, signer: true, writable: true}
//	    - {role: pool, writable: true}
//
// Omitted keys have the base's values. In `tags`, `seeds`, `accounts` and `fees`, a key replaces
// only the same key of the base. A list, and the mapping `errors`, replaces the base's value as a
// whole.
func ParseProfile(content []byte) (*Profile, error) {
	root, err := document(content)
	if err != nil {
		return nil, ProfileProblems{err}
	}
	r := &profileChecker{}
	p, ok := r.base(root)
	if !ok {
		return nil, ProfileProblems(r.faults)
	}
	r.mapping("", root, r.fields(p))
	if len(r.faults) > 0 {
		return nil, ProfileProblems(r.faults)
	}
	if err := ValidateProfile(p); err != nil {
		return nil, err
	}
	return p, nil
}

// document returns the root node of content, which has to be one YAML document. It drops the
// parser's errors, because they repeat values.
func document(content []byte) (*yaml.Node, error) {
	if len(content) > maxBytes {
		return nil, fmt.Errorf("profile: expected at most %d bytes, received %d", maxBytes, len(content))
	}
	var doc, second yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	if err := decoder.Decode(&doc); err != nil || len(doc.Content) != 1 {
		return nil, fmt.Errorf("profile: expected YAML with the keys of a profile, received %d bytes of something else", len(content))
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, errors.New("profile: expected one YAML document, received more")
	}
	return doc.Content[0], nil
}

// base returns the profile that the document starts from.
func (r *profileChecker) base(root *yaml.Node) (*Profile, bool) {
	if root.Kind != yaml.MappingNode {
		r.fault("", root, "expected keys and values, base first, received %s", yamlKind(root))
		return nil, false
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value != "base" {
			continue
		}
		p, err := BuiltIn(root.Content[i+1].Value)
		if err != nil {
			r.fault("base", root.Content[i+1], "expected shield-pool-v1 or development, received %s", yamlKind(root.Content[i+1]))
			return nil, false
		}
		return p, true
	}
	r.fault("base", nil, "is missing: expected shield-pool-v1 or development, the built-in profile that this one differs from")
	return nil, false
}

// fields returns the reader of each key of a profile.
func (r *profileChecker) fields(p *Profile) map[string]yamlField {
	return map[string]yamlField{
		"base": func(string, *yaml.Node) {}, // already read
		"name": func(path string, n *yaml.Node) {
			if text, ok := r.text(path, n, maxName); ok {
				p.Name = text
			}
		},
		"programID":              r.address(&p.ProgramID),
		"tags":                   r.tags(&p.Tags),
		"seeds":                  r.seeds(&p.Seeds),
		"accounts":               r.accounts(&p.Accounts),
		"mints":                  r.mints(&p.Mints),
		"fees":                   r.fees(&p.Fees),
		"extData":                oneOf(r, &p.ExtData, []ExtDataRule{ExtDataOpaque, ExtDataSHA256}),
		"recipientMinimum":       number(r, &p.RecipientMinimum, 0, maxUint64),
		"swapTimeout":            number(r, &p.SwapTimeout, 1, maxUint64),
		"rootHistory":            number(r, &p.RootHistory, MinRootHistory, MaxRootHistory),
		"allowOffCurveRecipient": r.boolean(&p.AllowOffCurveRecipient),
		"refusesV1":              r.boolean(&p.RefusesV1),
		"signInMessages": func(path string, n *yaml.Node) {
			p.SignInMessages = nil
			r.list(path, n, 1, maxMessages, func(path string, n *yaml.Node) {
				if text, ok := r.text(path, n, maxMessage); ok {
					p.SignInMessages = append(p.SignInMessages, text)
				}
			})
		},
		"errors":  r.names(&p.Errors),
		"classes": r.classes(&p.Classes),
	}
}

const maxUint64 = 1<<64 - 1

func (r *profileChecker) tags(t *Tags) yamlField {
	tag := func(to *uint8) yamlField { return number(r, to, 0, 255) }
	return r.group(map[string]yamlField{
		"transact": tag(&t.Transact), "transactSwap": tag(&t.TransactSwap), "initialize": tag(&t.Initialize),
		"prepareSwapSol": tag(&t.PrepareSwapSol), "executeSwap": tag(&t.ExecuteSwap), "closeSwapState": tag(&t.CloseSwapState),
	})
}

func (r *profileChecker) fees(f *Fees) yamlField {
	amount := func(to *uint64) yamlField { return number(r, to, 0, maxUint64) }
	return r.group(map[string]yamlField{
		"base": amount(&f.Base), "numerator": amount(&f.Numerator), "denominator": number(r, &f.Denominator, 1, maxUint64), "minDeposit": amount(&f.MinDeposit),
	})
}

// group returns the reader of a key whose value is a mapping.
func (r *profileChecker) group(fields map[string]yamlField) yamlField {
	return func(path string, n *yaml.Node) { r.mapping(path, n, fields) }
}

func (r *profileChecker) seeds(s *Seeds) yamlField {
	seeds := func(to *[]Seed, values ...SeedValue) yamlField {
		return func(path string, n *yaml.Node) {
			*to = nil
			r.list(path, n, 1, maxSeeds, func(path string, n *yaml.Node) {
				var seed Seed
				r.mapping(path, n, map[string]yamlField{
					"literal": func(path string, n *yaml.Node) { seed.Literal, _ = r.text(path, n, maxSeedLiteral) },
					"value":   oneOf(r, &seed.Value, values),
				})
				// If n has one key, mapping has already reported the faults of its value.
				if n.Kind == yaml.MappingNode && len(n.Content) != 2 {
					r.fault(path, n, "expected either literal or value, received %s", yamlKind(n))
				}
				*to = append(*to, seed)
			})
		}
	}
	return r.group(map[string]yamlField{
		"pool":       seeds(&s.Pool, SeedMint),
		"merkleTree": seeds(&s.MerkleTree, SeedMint, SeedPool),
		"treasury":   seeds(&s.Treasury, SeedMint, SeedPool),
		"nullifier":  seeds(&s.Nullifier, SeedMint, SeedPool, SeedNullifier),
		"swapState":  seeds(&s.SwapState, SeedMint, SeedPool, SeedNullifier),
	})
}

func (r *profileChecker) accounts(a *AccountOrders) yamlField {
	fields := map[string]yamlField{}
	for _, i := range profileInstructions(a) {
		fields[i.name] = func(path string, n *yaml.Node) {
			*i.order = nil
			r.list(path, n, 1, maxAccounts, func(path string, n *yaml.Node) {
				var role AccountRole
				r.mapping(path, n, map[string]yamlField{
					"role": oneOf(r, &role.Role, i.roles), "signer": r.boolean(&role.Signer), "writable": r.boolean(&role.Writable),
				})
				if n.Kind == yaml.MappingNode && role.Role == "" && !hasKey(n, "role") {
					r.fault(path, n, "role is missing")
				}
				*i.order = append(*i.order, role)
			})
		}
	}
	return r.group(fields)
}

func hasKey(n *yaml.Node, key string) bool {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return true
		}
	}
	return false
}

func (r *profileChecker) mints(to *[]Mint) yamlField {
	return func(path string, n *yaml.Node) {
		*to = nil
		r.list(path, n, 1, MaxMints, func(path string, n *yaml.Node) {
			var m Mint
			r.mapping(path, n, map[string]yamlField{
				"address": r.address(&m.Address),
				"field": func(path string, n *yaml.Node) {
					value, ok := parseField(n.Value)
					if n.Kind != yaml.ScalarNode || !ok {
						r.fault(path, n, "expected 64 hexadecimal digits, received %s", yamlKind(n))
						return
					}
					m.Field = value
				},
			})
			for _, key := range []string{"address", "field"} {
				if n.Kind == yaml.MappingNode && !hasKey(n, key) {
					r.fault(path, n, "%s is missing: a mint is an address and the field element that stands for it", key)
				}
			}
			*to = append(*to, m)
		})
	}
}

// parseCode reads a program error code, in decimal or as 0x and hexadecimal.
func parseCode(text string) (uint32, bool) {
	digits, base := text, 10
	if rest, ok := strings.CutPrefix(text, "0x"); ok {
		digits, base = rest, 16
	}
	v, err := strconv.ParseUint(digits, base, 32)
	return uint32(v), err == nil
}

func (r *profileChecker) names(to *map[uint32]string) yamlField {
	return func(path string, n *yaml.Node) {
		if n.Kind != yaml.MappingNode || len(n.Content) > 2*maxCodes {
			r.fault(path, n, "expected codes and their names, at most %d, received %s", maxCodes, yamlKind(n))
			return
		}
		*to = map[uint32]string{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			c, ok := parseCode(key.Value)
			if !ok || key.Kind != yaml.ScalarNode {
				r.fault(path, key, "expected a code such as 0x1001 as the key, received %s", yamlKind(key))
				continue
			}
			at := joinPath(path, fmt.Sprintf("0x%x", c))
			if _, twice := (*to)[c]; twice {
				r.fault(at, key, "the code is repeated: expected it once")
			}
			if text, ok := r.text(at, value, maxName); ok {
				(*to)[c] = text
			}
		}
	}
}

func (r *profileChecker) classes(to *[]ClassRange) yamlField {
	return func(path string, n *yaml.Node) {
		*to = nil
		r.list(path, n, 0, maxCodes, func(path string, n *yaml.Node) {
			var c ClassRange
			bound := func(to *uint32) yamlField {
				return func(path string, n *yaml.Node) {
					v, ok := parseCode(n.Value)
					if !ok || n.Kind != yaml.ScalarNode {
						r.fault(path, n, "expected a code such as 0x1001, received %s", yamlKind(n))
					}
					*to = v
				}
			}
			r.mapping(path, n, map[string]yamlField{"first": bound(&c.First), "last": bound(&c.Last), "class": oneOf(r, &c.Class, classNames())})
			if n.Kind == yaml.MappingNode && (!hasKey(n, "first") || !hasKey(n, "class")) {
				r.fault(path, n, "expected first, last (first when left out) and class")
			}
			if n.Kind == yaml.MappingNode && !hasKey(n, "last") {
				c.Last = c.First
			}
			*to = append(*to, c)
		})
	}
}
