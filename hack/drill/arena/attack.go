package arena

import (
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/token"
	"github.com/gagliardetto/solana-go/rpc"

	"github.com/relaypool/relaypool/hack/drill/verify"
	"github.com/relaypool/relaypool/hack/load"
	"github.com/relaypool/relaypool/relay/contract"
)

// attacks are the actions of hostile clients, by name. Each runs until ctx ends, and needs
// nothing but HTTP.
func attacks() map[string]func(*attacker, context.Context) {
	return map[string]func(*attacker, context.Context){
		"forges":               (*attacker).forge,
		"wrong proof encoding": (*attacker).negate,
		"long fields":          (*attacker).overfill,
		"stalled readers":      (*attacker).stall,
		"copies":               (*attacker).copyLanded,
		"spends twice":         (*attacker).spendTwice,
		"closes accounts":      (*attacker).closeAccounts,
	}
}

// AttackNames are the names of the attacks.
func AttackNames() []string { return slices.Sorted(maps.Keys(attacks())) }

const (
	// firstHostileNumber is the first number of hostile spends, above the numbers of
	// honest clients. Each attack has numbersPerAttack numbers.
	firstHostileNumber, numbersPerAttack = 1 << 40, 1 << 20
	// busyPause is the pause between requests that cost the relay little. calmPause
	// is the pause between expensive requests.
	busyPause, calmPause = 20 * time.Millisecond, 250 * time.Millisecond
	// hostileTimeout is how long a hostile client waits for an answer.
	hostileTimeout = 5 * time.Second
	// stalledReaders is the number of connections that one address opens and does not read from.
	stalledReaders = 100
	// longField is the length of a field that is far too long.
	longField = 15_300
	// closingUnits is more compute than the closing of an account uses.
	closingUnits = 50_000
)

type attacker struct {
	*arena
	name string
	// next is the number of the next spend; sent is the number of requests so far.
	next, sent int
}

func (a *arena) attack(ctx context.Context, name string) {
	a.mu.Lock()
	a.attackCount++
	c := &attacker{arena: a, name: name, next: firstHostileNumber + a.attackCount*numbersPerAttack}
	a.mu.Unlock()
	attacks()[name](c, ctx)
}

func (c *attacker) repeat(ctx context.Context, pause time.Duration, do func()) {
	for ctx.Err() == nil {
		do()
		load.Sleep(ctx, pause)
	}
}

// repeatSpends makes spends of the attacker's own notes, but none without the chain.
func (c *attacker) repeatSpends(ctx context.Context, pause time.Duration, do func(*load.Request)) {
	c.repeat(ctx, pause, func() {
		if root, err := c.chainReader.Root(ctx, rpc.CommitmentConfirmed); err == nil {
			c.next++
			q := c.load.NewRequest(c.next, root)
			do(&q)
		}
	})
}

// post sends a body to the relays in turn and records the answer. A missing answer is
// ignored: the relay is down or busy, and other checks cover the honest clients.
func (c *attacker) post(ctx context.Context, path string, body []byte) {
	c.sent++
	ctx, cancel := context.WithTimeout(ctx, hostileTimeout)
	defer cancel()
	a := c.load.Post(ctx, path, "respond-async", body)
	if a.Fault != "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hostileAnswers[verify.HostileAnswer{Attack: c.name, Status: a.Status, Code: a.Code}]++
}

func (c *attacker) postRequest(ctx context.Context, q *load.Request) {
	if body, err := q.Body(0); err == nil {
		c.post(ctx, q.Path(), body)
	}
}

// forge posts proofs of other statements, and bytes that are not a proof.
func (c *attacker) forge(ctx context.Context) {
	c.repeatSpends(ctx, busyPause, func(q *load.Request) {
		other := q.Inputs
		other.Nullifiers[0] = q.Inputs.Commitments[0]
		q.Proofs[0] = c.load.Simulator.Prove(&other, 0)
		if c.sent%3 == 0 {
			copy(q.Proofs[0][:64], q.Proofs[0][64:128])
		}
		c.postRequest(ctx, q)
	})
}

// negate posts proofs with A negated. They verify as the other encoding of A, but the
// program refuses them. A relay that has seen no finalized transaction cannot know which
// encoding the program accepts.
func (c *attacker) negate(ctx context.Context) {
	c.repeatSpends(ctx, calmPause, func(q *load.Request) {
		// The modulus of BN254's base field.
		prime, _ := new(big.Int).SetString("21888242871839275222246405745257275088696311157297823662689037894645226208583", 10)
		y := new(big.Int).SetBytes(q.Proofs[0][32:64])
		y.Sub(prime, y).FillBytes(q.Proofs[0][32:64])
		c.postRequest(ctx, q)
	})
}

// overfill posts requests with one field that is far too long.
func (c *attacker) overfill(ctx context.Context) {
	c.repeatSpends(ctx, busyPause, func(q *load.Request) {
		body, err := q.Body(0)
		if err != nil {
			return
		}
		var fields map[string]any
		if json.Unmarshal(body, &fields) != nil {
			return
		}
		long := strings.Repeat("z", longField)
		fields["recipient"] = long
		if names := slices.Sorted(maps.Keys(fields)); c.sent%2 == 0 {
			fields[names[c.sent/2%len(names)]] = long
		}
		if body, err = json.Marshal(fields); err == nil {
			c.post(ctx, q.Path(), body)
		}
	})
}

// stall asks for all commitments on many connections and reads nothing.
func (c *attacker) stall(ctx context.Context) {
	var reading sync.WaitGroup
	for i := range stalledReaders {
		reading.Go(func() {
			host := strings.TrimPrefix(c.relays[i%len(c.relays)].URL, "http://")
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", host)
			if err != nil {
				return // the relay is down
			}
			defer func() { _ = conn.Close() }()
			if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", contract.CommitmentsPath, host); err == nil {
				<-ctx.Done()
			}
		})
	}
	reading.Wait()
}

// copyLanded posts copies of calls that others have landed: anybody can read them on the chain.
func (c *attacker) copyLanded(ctx context.Context) {
	var landed []load.Request
	for _, record := range c.load.Journal().Records() {
		for i := range record.Requests {
			q := &record.Requests[i]
			if slices.ContainsFunc(q.Answers, func(a load.Answer) bool { return a.State == "completed" }) {
				landed = append(landed, *q)
			}
		}
	}
	if len(landed) == 0 {
		return
	}
	c.repeat(ctx, calmPause, func() {
		q := landed[c.sent*7%len(landed)]
		if c.sent%2 == 0 { // every second request pays the attacker's own recipient
			q.Recipient = stranger().PublicKey()
		}
		c.postRequest(ctx, &q)
	})
}

// spendTwice spends a note at the relay and on the chain at the same time.
func (c *attacker) spendTwice(ctx context.Context) {
	c.repeatSpends(ctx, calmPause, func(q *load.Request) {
		var spending sync.WaitGroup
		spending.Go(func() { c.direct(ctx, q) })
		c.postRequest(ctx, q)
		spending.Wait()
	})
}

// closeAccounts requests a swap. Whenever the token account that the relay creates for the
// output exists and is empty, the attacker closes that account to get its rent.
func (c *attacker) closeAccounts(ctx context.Context) {
	c.next++
	var seed [ed25519.SeedSize]byte
	binary.BigEndian.PutUint64(seed[:], uint64(c.next)) //nolint:gosec // a number of hostile spends
	owner := solana.PrivateKey(ed25519.NewKeyFromSeed(seed[:]))
	root, err := c.chainReader.Root(ctx, rpc.CommitmentConfirmed)
	if err != nil {
		return
	}
	q, err := c.load.NewSwapRequest(ctx, c.next, root, owner.PublicKey())
	if err != nil {
		return
	}
	c.postRequest(ctx, &q)
	c.repeat(ctx, c.o.Slot, func() {
		if account := q.Swap.Terms.RecipientATA; c.exists(ctx, account) {
			key := stranger() // it gets the rent; closing fails while the account has tokens
			closing := token.NewCloseAccountInstruction(account, key.PublicKey(), owner.PublicKey(), nil).Build()
			_ = c.box.Send(ctx, closingUnits, false, []solana.PrivateKey{key, owner}, closing)
		}
	})
}
