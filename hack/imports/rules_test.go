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
		"./relay/internal/admission",
		"./relay/internal/commitments",
		"./relay/internal/spending",
		"./relay/internal/submission",
		"./relay/internal/swap",
		"./relay/internal/sweep",
		"./relay/internal/viewingkey",
	}
	// testSupport is outside _test.go files but never in a program.
	testSupport = []string{"./relay/internal/pgtest", "./controllers/internal/pool/pooltest"}
	wiring      = []string{"./relay/internal/app/...", "./relay/cmd/..."}
	// shared is what the operator has of the relay: what both must see alike.
	shared = []string{
		"./relay/commandline", "./relay/contract", "./relay/shieldpool", "./relay/poolcheck", "./relay/profile", "./relay/keyfile",
		"./relay/refusal", "./relay/merkle", "./relay/groth16",
	}
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
			forbid: []string{"k8s.io/client-go/...", "sigs.k8s.io/controller-runtime/...", "./api/...", "./controllers/..."},
			why:    "the operator talks to the cluster, a relay pod has no token for it",
		},
		"the operator knows what relays show of themselves": {
			of: []string{"./controllers/..."}, except: testSupport, reach: links,
			forbid: []string{"./..."}, allow: slices.Concat(shared, []string{"./api/...", "./config/crd", "./controllers/..."}),
			why: "it starts relays by their image and speaks to them over HTTP; what both need has a package of its own in relay/",
		},
		"the operator never links a database": {
			of: []string{"./controllers/..."}, except: testSupport, reach: links,
			forbid: []string{"github.com/jackc/pgx/v5/...", "github.com/riverqueue/river/..."},
			why:    "Postgres is the relays': the operator works while it is away, and holds no connection to what it does not need",
		},
		"the operator starts no programs": {
			of: []string{"./controllers/..."}, except: testSupport, reach: imports,
			forbid: []string{"os/exec"},
			why:    "its image has no other program, and the linter does not look for tainted commands",
		},
		"the builders are pure": {
			of: []string{"./controllers/internal/build"}, reach: imports,
			forbid: impure,
			why:    "the same RelayPool must give the same objects everywhere: pass in what comes from outside",
		},
		"the resource is its types": {
			of: []string{"./api/..."}, except: []string{"./api/v1alpha1/applyconfiguration/..."}, reach: imports,
			// k8s.io/api has the types that a pod's template takes as they are, such as
			// tolerations, and nothing that talks to anybody.
			forbid: []string{"all"}, allow: []string{"std", "./api/...", "k8s.io/apimachinery/...", "k8s.io/api/..."},
			why: "clients of the resource import it, and should not have to link an operator or a client with it",
		},
		"the resource's apply configurations are generated types too": {
			of: []string{"./api/v1alpha1/applyconfiguration/..."}, reach: imports,
			forbid: []string{"all"}, allow: []string{
				"std", "./api/...", "k8s.io/apimachinery/...", "k8s.io/api/...",
				"k8s.io/client-go/applyconfigurations/...", "sigs.k8s.io/structured-merge-diff/...",
			},
			why: "they add how to name some fields only, and nothing that talks to anybody",
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
			why:    "it starts database servers and local chains: import it from _test.go files only",
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
		"the checks of a pool are pure": {
			of: []string{"./relay/poolcheck", "./relay/profile"}, reach: imports,
			forbid: impure,
			why:    "relay, operator and probe read the chain each with a client of its own: pass in a reader",
		},
		"the checks of a pool need its protocol only": {
			of: []string{"./relay/poolcheck", "./relay/profile"}, reach: links,
			forbid: []string{"./..."}, allow: []string{"./relay/poolcheck", "./relay/profile", "./relay/shieldpool", "./relay/groth16", "./relay/merkle", "./relay/refusal"},
			why: "relay and operator share them, and neither may pull in the other",
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
