package poolcheck

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gagliardetto/solana-go"
)

// State is the outcome of a check.
type State string

// Unknown means that the needed data could not be read.
const (
	OK      State = "ok"
	Failed  State = "failed"
	Unknown State = "unknown"
)

// Reason is a stable code, also used in the RelayPool's condition.
type Reason string

// The reasons.
const (
	// ReasonInitialised: every check is ok.
	ReasonInitialised Reason = "Initialised"
	// ReasonNotChecked: nothing has been read yet, or there is no transaction to compare with.
	ReasonNotChecked Reason = "NotChecked"
	// ReasonChainUnavailable: no endpoint answers.
	ReasonChainUnavailable Reason = "ChainUnavailable"
	// ReasonConfigurationIncomplete: the target lacks what a check needs.
	ReasonConfigurationIncomplete Reason = "ConfigurationIncomplete"
	// ReasonWrongCluster: the chain's genesis hash is not the declared one.
	ReasonWrongCluster Reason = "WrongCluster"
	// ReasonProgramMissing: the address has no executable program.
	ReasonProgramMissing Reason = "ProgramMissing"
	// ReasonAccountMissing: pool, tree or treasury does not exist.
	ReasonAccountMissing Reason = "AccountMissing"
	// ReasonAccountForeign: another program owns pool, tree or treasury.
	ReasonAccountForeign Reason = "AccountForeign"
	// ReasonTreeMismatch: the tree account, decoded as the profile says, is inconsistent.
	ReasonTreeMismatch Reason = "TreeMismatch"
	// ReasonTreeFull: the tree has fewer than MinFreeLeaves free leaves.
	ReasonTreeFull Reason = "TreeFull"
	// ReasonMintUnknown: a declared mint is not a mint of the SPL Token program, or a
	// transaction has the field of a mint that the profile lacks.
	ReasonMintUnknown Reason = "MintUnknown"
	// ReasonVerifyingKeyUnfit: the verifying key is not that of the pool's circuit, or must
	// not be used on this chain.
	ReasonVerifyingKeyUnfit Reason = "VerifyingKeyUnfit"
)

// The names of checks.
const (
	CheckGenesis      = "genesis"
	CheckVerifyingKey = "verifying_key"
	CheckProgram      = "program"
	CheckPool         = "pool"
	CheckMerkleTree   = "merkle_tree"
	CheckTreasury     = "treasury"
	CheckSelfCheck    = "tree_self_check"
	CheckRoom         = "tree_room"
	CheckMint         = "mint"
)

// Check is the result of one check. Its texts are for people, do not vary while nothing
// changes, and contain no secret.
type Check struct {
	// Name is one of the names above.
	Name  string `json:"name"`
	State State  `json:"state"`
	// Reason is empty for a check that is ok.
	Reason Reason `json:"reason,omitempty"`
	// Subject is the account's address in base58; empty where there is none.
	Subject  string `json:"subject,omitempty"`
	Expected string `json:"expected"`
	Found    string `json:"found"`
	// Remedy is what to do; empty for a check that is ok.
	Remedy string `json:"remedy,omitempty"`
}

// String returns the check as one sentence with its remedy.
func (c Check) String() string {
	if c.Remedy == "" {
		return c.finding()
	}
	return c.finding() + ": " + c.Remedy
}

// finding returns the check without the remedy.
func (c Check) finding() string {
	subject := strings.ReplaceAll(c.Name, "_", " ")
	if c.Subject != "" {
		subject += " " + c.Subject
	}
	if c.State == OK {
		return subject + ": " + c.Found
	}
	return fmt.Sprintf("%s: expected %s, found %s", subject, c.Expected, c.Found)
}

// PoolFacts are one pool's accounts and the facts of its tree.
type PoolFacts struct {
	Mint       solana.PublicKey `json:"mint"`
	Address    solana.PublicKey `json:"pool"`
	MerkleTree solana.PublicKey `json:"merkle_tree"`
	Treasury   solana.PublicKey `json:"treasury"`
	// NextIndex is the number of the tree's leaves; nil when unknown.
	NextIndex *uint64 `json:"next_index,omitempty"`
}

// Report is what the checks found.
type Report struct {
	// Checks are in a fixed order.
	Checks []Check `json:"checks"`
	// Slot is the slot at which the accounts were read; 0 when no account was read.
	Slot uint64 `json:"slot,omitempty"`
	// Pools are the profile's pools, beginning with that of its first mint.
	Pools []PoolFacts `json:"pools,omitempty"`
	// Balances of the target's extra accounts, in lamports: 0 for one that does not
	// exist, no entry for one that was not read.
	Balances map[solana.PublicKey]uint64 `json:"-"`
}

// Summary returns the report as one state and reason. The state is failed if a check failed,
// else unknown if a check is unknown, else ok. Summary also returns the checks with that state, in
// their order. The reason is that of the first of these checks, or ReasonInitialised.
func (r *Report) Summary() (state State, reason Reason, checks []Check) {
	if len(r.Checks) == 0 {
		return Unknown, ReasonNotChecked, nil
	}
	for _, state := range []State{Failed, Unknown} {
		for i := range r.Checks {
			if r.Checks[i].State == state {
				checks = append(checks, r.Checks[i])
			}
		}
		if len(checks) > 0 {
			return state, checks[0].Reason, checks
		}
	}
	return OK, ReasonInitialised, slices.Clone(r.Checks)
}

// Message returns the summary for a person: what is wrong and what to do. It stays the same
// while nothing changes.
func (r *Report) Message() string {
	state, _, checks := r.Summary()
	if state == OK {
		return "the pool is initialised and matches the profile"
	}
	if len(checks) == 0 {
		return "the pool has not been checked yet"
	}
	var parts []string
	for i, c := range checks {
		switch {
		case state == Unknown:
			// A cause that makes several checks unknown is reported once.
			if !slices.Contains(parts, c.Found) {
				parts = append(parts, c.Found)
			}
		case i+1 < len(checks) && checks[i+1].Remedy == c.Remedy:
			// A remedy for several checks follows the last of them.
			parts = append(parts, c.finding())
		default:
			parts = append(parts, c.String())
		}
	}
	return strings.Join(parts, "; ")
}

// NextIndex returns the number of leaves of the first mint's tree; ok is false when
// unknown.
func (r *Report) NextIndex() (n uint64, ok bool) {
	if len(r.Pools) == 0 || r.Pools[0].NextIndex == nil {
		return 0, false
	}
	return *r.Pools[0].NextIndex, true
}
