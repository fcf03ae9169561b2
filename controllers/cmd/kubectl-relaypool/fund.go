package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/relay/commandline"
	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/rpc"
)

type fundCmd struct {
	Name             string        `arg:"" help:"Name of the RelayPool."`
	TopUp            bool          `help:"Also fill up payers that have their minimum, but not the target."`
	FromKeyFile      string        `placeholder:"FILE" group:"Send" help:"Key file of the account that pays, as solana-keygen and relay keygen write it. One transfer is sent to each payer. Needs an RPC endpoint."`
	RPCURL           string        `name:"rpc-url" placeholder:"URL" group:"Send" help:"RPC endpoint of the RelayPool's chain. Balances are then read from it rather than from the status."`
	RPCURLFile       string        `name:"rpc-url-file" placeholder:"FILE" group:"Send" help:"File with the URL of the RPC endpoint, for a URL with credentials."`
	ComputeUnitPrice uint64        `default:"100000" placeholder:"MICROLAMPORTS" group:"Send" help:"Price per compute unit, of which a transfer has 600, in millionths of a lamport."`
	Yes              bool          `short:"y" group:"Send" help:"Send without a question."`
	Timeout          time.Duration `default:"3m" placeholder:"DURATION" group:"Send" help:"How long to wait for each transfer to be confirmed."`
}

// Run prints what the payers lack, and sends it if there is a key.
func (c *fundCmd) Run(env *environment) error {
	cluster, err := env.connect()
	if err != nil {
		return err
	}
	endpoint, err := c.endpoint(env)
	if err != nil {
		return err
	}
	if c.FromKeyFile != "" && endpoint == nil {
		return fmt.Errorf("%w: --from-key-file: expected --rpc-url or --rpc-url-file as well", commandline.ErrUsage)
	}
	pool, err := cluster.relayPool(env, c.Name)
	if err != nil {
		return err
	}
	payers, withoutCopy := payersInUse(pool)
	for _, address := range withoutCopy {
		fmt.Fprintf(env.err, "do not fund %s yet: nobody has acknowledged a copy of its key, see the condition %s\n", address, v1alpha1.ConditionKeysBackedUp)
	}
	if len(payers) == 0 && len(withoutCopy) > 0 {
		return fmt.Errorf("no fee payer of RelayPool %s may be funded yet: acknowledge the copies of its keys first", c.Name)
	}
	if len(payers) == 0 {
		return fmt.Errorf("RelayPool %s shows no fee payers yet: see the condition %s in kubectl relaypool status %s", c.Name, v1alpha1.ConditionSecretsResolved, c.Name)
	}
	if endpoint != nil {
		if err := checkGenesis(env, endpoint, pool); err != nil {
			return err
		}
		if err := readBalances(env, endpoint, payers); err != nil {
			return err
		}
	}
	short := findShort(payers, &pool.Spec.FeePayers, c.TopUp, endpoint != nil)
	printShort(env, pool, payers, short)
	if c.FromKeyFile == "" || len(short) == 0 {
		return nil
	}
	return c.send(env, endpoint, pool, short)
}

// endpoint makes a client of the RPC endpoint, or returns nil if none is named.
func (c *fundCmd) endpoint(env *environment) (*rpc.Client, error) {
	url := c.RPCURL
	if c.RPCURLFile != "" {
		if url != "" {
			return nil, fmt.Errorf("%w: --rpc-url, --rpc-url-file: expected one of the two", commandline.ErrUsage)
		}
		content, err := os.ReadFile(c.RPCURLFile)
		if err != nil {
			return nil, fmt.Errorf("%w: --rpc-url-file: %w", commandline.ErrUsage, err)
		}
		url = strings.TrimSpace(string(content))
	}
	if url == "" {
		return nil, nil // no endpoint is named
	}
	endpoint, err := rpc.New(rpc.Options{URL: url, HTTP: rpc.NewHTTPClient(), Now: env.now})
	if err != nil {
		return nil, fmt.Errorf("%w: --rpc-url: %w", commandline.ErrUsage, err)
	}
	return endpoint, nil
}

// checkGenesis refuses an endpoint of another chain than the RelayPool's.
func checkGenesis(ctx context.Context, endpoint *rpc.Client, pool *v1alpha1.RelayPool) error {
	hash, err := endpoint.GenesisHash(ctx)
	if err != nil {
		return fmt.Errorf("read the endpoint's genesis hash: %w", err)
	}
	if want := contract.GenesisHash(pool.Spec.Solana.Cluster); hash.String() != want {
		return fmt.Errorf("%w: --rpc-url: the endpoint serves the chain with genesis hash %s, expected %s, as spec.solana.cluster of RelayPool %s says", commandline.ErrUsage, hash, want, pool.Name)
	}
	return nil
}

// send asks whether to send, and sends one transfer to each payer.
func (c *fundCmd) send(env *environment, endpoint *rpc.Client, pool *v1alpha1.RelayPool, short []shortfall) error {
	key, err := readKey(c.FromKeyFile)
	if err != nil {
		return err
	}
	defer clear(key)
	s := &sender{env: env, endpoint: endpoint, key: key, price: c.ComputeUnitPrice, timeout: c.Timeout}
	sum, err := s.checkFunds(short)
	if err != nil {
		return err
	}
	if !c.Yes {
		fmt.Fprintf(env.err, "Send %d transfers of %s SOL in all from %s on %s? [y/N] ", len(short), onchain.SOL(sum), s.from(), pool.Spec.Solana.Cluster)
		answer, err := bufio.NewReader(env.in).ReadString('\n')
		if err != nil && answer == "" {
			return fmt.Errorf("%w: no answer could be read: --yes sends without a question", commandline.ErrUsage)
		}
		if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
			return errors.New("nothing was sent")
		}
	}
	for i := range short {
		if err := s.transfer(short[i].to, short[i].missing); err != nil {
			return fmt.Errorf("send %s SOL to %s: %w", onchain.SOL(short[i].missing), short[i].to, err)
		}
	}
	return nil
}

// payer is a fee payer in use, with its balance if that is known.
type payer struct {
	address  solana.PublicKey
	lamports *uint64
}

// awaitsCopy reports whether a payer must not be funded yet, because nobody has acknowledged a copy of
// its generated key.
func awaitsCopy(pool *v1alpha1.RelayPool, p *v1alpha1.FeePayerStatus) bool {
	generate := pool.Spec.FeePayers.Generate
	if generate == nil || generate.Backup == nil || !generate.Backup.Required || p.BackedUp || p.SignerName != "" {
		return false
	}
	own := slices.ContainsFunc(pool.Spec.FeePayers.SecretRefs, func(ref v1alpha1.SecretKeyReference) bool { return ref.Name == p.SecretName })
	return !own
}

// payersInUse returns the payers of the status that the fleet pays with and that may be funded, and
// the addresses of those that may not yet.
func payersInUse(pool *v1alpha1.RelayPool) (payers []payer, withoutCopy []string) {
	for i := range pool.Status.FeePayers {
		p := &pool.Status.FeePayers[i]
		address, err := solana.PublicKeyFromBase58(p.Address)
		if p.State != v1alpha1.PayerActive || err != nil {
			continue
		}
		if awaitsCopy(pool, p) {
			withoutCopy = append(withoutCopy, p.Address)
			continue
		}
		known := payer{address: address}
		if p.BalanceLamports != nil {
			lamports := orDefault(p.BalanceLamports, 0)
			known.lamports = &lamports
		}
		payers = append(payers, known)
	}
	return payers, withoutCopy
}
