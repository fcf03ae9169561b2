package imports

import "slices"

// reach says how far a rule looks.
type reach string

const (
	imports reach = "imports" // the package's own import statements
	links   reach = "links"   // everything that ends up in a program with it
)

// rule forbids imports of non-test files. Patterns are those of the go
// command: ./x is a package of this module, /... at the end means everything
// below too, std is the standard library and all everything.
type rule struct {
	of     []string // the packages that the rule binds
	except []string // and among them not these
	reach  reach
	forbid []string
	allow  []string // exceptions to forbid
	why    string   // completes "because …"
}

var (
	adapters = []string{
		"./relay/internal/chain",
		"./relay/internal/config",
		"./relay/internal/feepayer",
		"./relay/internal/httpapi",
		"./relay/internal/router",
		"./relay/internal/store",
		"./relay/internal/telemetry",
	}
	domains = []string{
		"./relay/internal/commitments",
		"./relay/internal/spending",
		"./relay/internal/submission",
		"./relay/internal/swap",
		"./relay/internal/viewingkey",
	}
	// testSupport is outside _test.go files but never in a program.
	testSupport = []string{"./relay/internal/pgtest"}
	wiring      = []string{"./relay/internal/app/...", "./relay/cmd/..."}
	// impure reaches the network, the machine, a database, a clock's log or
	// chance. Dependencies may link some of these; our own files must not.
	impure = []string{
		"net", "net/...", "os", "os/...", "syscall", "database/sql/...", "log", "log/...", "math/rand/...", "crypto/rand",
		"github.com/jackc/pgx/v5/...", "github.com/gagliardetto/solana-go/rpc/...",
	}
)

// rules gives every rule under the sentence that it upholds.
func rules() map[string]rule {
	all := map[string]rule{
		"the relay never links Kubernetes' client": {
			of: []string{"./relay/..."}, reach: links,
			forbid: []string{"k8s.io/client-go/..."},
			why:    "the operator talks to the cluster, a relay pod has no token for it",
		},
		"the relay never links what is for development": {
			of: []string{"./relay/..."}, except: testSupport, reach: links,
			forbid: []string{"./hack/..."},
			why:    "hack/ holds a make-believe chain, known keys and installers: only tests of the relay may use it",
		},
		"the relay never links a prover": {
			of: []string{"./relay/..."}, reach: links,
			forbid: []string{"github.com/consensys/gnark/..."},
			why:    "clients prove, the relay verifies; the prover is a program of its own in hack/circuit",
		},
		"test support stays in tests": {
			of: []string{"./..."}, except: testSupport, reach: imports,
			forbid: testSupport,
			why:    "it starts database servers: import it from _test.go files only",
		},
		"the relay starts no programs": {
			of: []string{"./relay/..."}, reach: imports,
			forbid: []string{"os/exec"},
			why:    "its image has no other program, and the linter does not look for tainted commands",
		},
		"domains know no adapter": {
			of: domains, reach: links,
			forbid: below(adapters),
			why:    "a domain states what it needs as an interface of its own, and app hands it the adapter",
		},
		"adapters are wired in one place": {
			of: []string{"./..."}, except: slices.Concat(wiring, below(adapters)), reach: imports,
			forbid: below(adapters),
			why:    "relay/internal/app is the only package that knows all the others; move the wiring there",
		},
		"nothing depends on the wiring": {
			of: []string{"./..."}, except: wiring, reach: links,
			forbid: []string{"./relay/internal/app/..."},
			why:    "the program's main starts app, and nothing else knows it",
		},
		"the relay's public packages stand alone": {
			of: []string{"./relay/..."}, except: []string{"./relay/internal/...", "./relay/cmd/..."}, reach: links,
			forbid: []string{"./relay/internal/..."},
			why:    "clients and the operator use them without the relay's insides",
		},
		"what operator and relay agree on is the standard library only": {
			of: []string{"./relay/contract", "./relay/refusal"}, reach: links,
			forbid: []string{"all"}, allow: []string{"std"},
			why: "everything imports these two, so whatever they import is everywhere",
		},
		"the cryptography is pure": {
			of: []string{"./relay/groth16", "./relay/merkle", "./relay/shieldpool"}, reach: imports,
			forbid: impure,
			why:    "the same bytes must give the same answer everywhere: pass in what comes from outside",
		},
		"what the chain and the router say are values": {
			of: []string{"./relay/internal/ledger", "./relay/internal/route"}, reach: imports,
			forbid: impure,
			why:    "domains speak of both without the clients that reach them",
		},
		"the tree and the verifier know no package of ours": {
			of: []string{"./relay/groth16", "./relay/merkle"}, reach: links,
			forbid: []string{"./..."},
			why:    "they are libraries of mathematics, tested against other implementations alone",
		},
		"the pool's protocol needs the tree and the refusals only": {
			of: []string{"./relay/shieldpool"}, reach: links,
			forbid: []string{"./..."}, allow: []string{"./relay/merkle", "./relay/refusal"},
			why: "relay, operator and tools share it, and none of them may pull in another",
		},
	}
	for _, adapter := range adapters {
		others := slices.DeleteFunc(slices.Clone(adapters), func(other string) bool { return other == adapter })
		all["the adapter "+adapter+" imports no other"] = rule{
			of: below([]string{adapter}), reach: links,
			forbid: below(others),
			why:    "an adapter serves a domain's interface; app puts two of them together",
		}
	}
	return all
}

// below widens packages to everything below them.
func below(packages []string) []string {
	wide := make([]string, 0, len(packages))
	for _, p := range packages {
		wide = append(wide, p+"/...")
	}
	return wide
}
