// Package node is the local chain as the benchmark runs it, in a process of its
// own: with a ring and limits to choose, and with a note of when each
// transaction reached it first.
package node

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

const (
	// SendsPath is where the note of sends is read.
	SendsPath = "/sends"
	// ProfilePath is where a profile of the process is taken, ?for=8s.
	ProfilePath = "/profile"
	// lamports of the pool and of each payer: more than any run spends.
	lamports          = 1_000_000 * solana.LAMPORTS_PER_SOL
	readHeaderTimeout = 5 * time.Second
)

// settings are what the flags say.
type settings struct {
	listen, admin, sends string
	// router is empty for none.
	router string
	key    string
	ring   int
	limits bank.BlockLimits
	funded []solana.PublicKey
}

func parse(args []string, stderr io.Writer) (*settings, error) {
	s := &settings{}
	flags := flag.NewFlagSet("node", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&s.listen, "listen", "", "`address` of JSON-RPC and WebSocket")
	flags.StringVar(&s.admin, "admin", "", "`address` of the chain's admin port")
	flags.StringVar(&s.sends, "sends", "", "`address` that tells of sends")
	flags.StringVar(&s.router, "router", "", "`address` of the swap router; empty for none")
	flags.StringVar(&s.key, "vk", "", "`file` of the verifying key")
	flags.IntVar(&s.ring, "ring", shieldpool.Development().RootHistory, "number of `roots` that the program remembers")
	flags.Uint64Var(&s.limits.Block, "block-units", bank.DefaultBlockUnits, "compute `units` of a block")
	flags.Uint64Var(&s.limits.Account, "account-units", bank.DefaultAccountUnits, "compute `units` of a block that write one account")
	flags.Func("fund", "`address` that gets lamports; may be repeated", func(text string) error {
		key, err := solana.PublicKeyFromBase58(text)
		s.funded = append(s.funded, key)
		return err
	})
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if s.listen == "" || s.admin == "" || s.sends == "" || s.key == "" || flags.NArg() > 0 {
		return nil, errors.New("node: -listen, -admin, -sends and -vk are required, and nothing but flags is expected")
	}
	return s, nil
}

// Run serves a chain until ctx ends. Its arguments are those of a command line
// that this program writes for itself.
func Run(ctx context.Context, args []string, stderr io.Writer) (err error) {
	s, err := parse(args, stderr)
	if err != nil {
		return err
	}
	key, err := os.ReadFile(filepath.Clean(s.key))
	if err != nil {
		return fmt.Errorf("read the verifying key: %w", err)
	}
	chain, err := localnet.New(localnet.Options{VerifyingKey: key, Ring: s.ring, Limits: s.limits, Initialised: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, chain.Close()) }()
	if err := fund(chain, s.funded); err != nil {
		return err
	}
	if _, err := chain.ListenAdmin(s.admin); err != nil {
		return err
	}
	if s.router != "" {
		if _, err := chain.ListenRouter(s.router); err != nil {
			return err
		}
	}
	r := newRecorder(chain, time.Now)
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+SendsPath, r.serveSends)
	mux.HandleFunc("GET "+ProfilePath, serveProfile)
	failed := make(chan error, 2)
	closeSends, err := serve(ctx, s.sends, mux, failed)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeSends()) }()
	chain.Start(ctx)
	// Last, because whoever reaches it may begin.
	closeRPC, err := serve(ctx, s.listen, r, failed)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeRPC()) }()
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return err
	}
}

// fund gives the pool and everybody named what a run needs, finalized.
func fund(chain *localnet.Chain, keys []solana.PublicKey) error {
	profile := shieldpool.Development()
	pool, err := profile.Pool(profile.Mints[0])
	if err != nil {
		return err
	}
	for _, key := range append(keys, pool.Address) {
		if err := chain.Fund(key, lamports); err != nil {
			return err
		}
	}
	chain.Finalize()
	return nil
}

// serve serves a handler until it is closed.
func serve(ctx context.Context, address string, handler http.Handler, failed chan<- error) (closer func() error, err error) {
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("node: %w", err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: readHeaderTimeout}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			failed <- err
		}
	}()
	return server.Close, nil
}
