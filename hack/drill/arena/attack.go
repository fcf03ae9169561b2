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
	// busyPause is the pause between requests that cost the relay little, calmPause
	// the pause between expensive ones.
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
	at := &attacker{arena: a, name: name, next: firstHostileNumber + a.attackCount*numbersPerAttack}
	a.mu.Unlock()
	attacks()[name](at, ctx)
}

// newSpend makes a spend of the attacker's own notes; false when the chain does not answer.
func (at *attacker) newSpend(ctx context.Context) (load.Request, bool) {
	root, err := at.chainReader.Root(ctx, rpc.CommitmentConfirmed)
	if err != nil {
		return load.Request{}, false
	}
	at.next++
	return at.load.NewRequest(at.next, root), true
}

func (at *attacker) repeat(ctx context.Context, pause time.Duration, do func()) {
	for ctx.Err() == nil {
		do()
		load.Sleep(ctx, pause)
	}
}

// post sends a body to the relays in turn and records the answer. A missing answer is
// ignored: the relay is down or busy, and other checks cover the honest clients.
func (at *attacker) post(ctx context.Context, path string, body []byte) {
	at.sent++
	ctx, cancel := context.WithTimeout(ctx, hostileTimeout)
	defer cancel()
	a := at.load.Post(ctx, path, "respond-async", body)
	if a.Fault != "" {
		return
	}
	at.mu.Lock()
	defer at.mu.Unlock()
	at.hostileAnswers[verify.HostileAnswer{Attack: at.name, Status: a.Status, Code: a.Code}]++
}

func (at *attacker) postRequest(ctx context.Context, q *load.Request) {
	if body, err := q.Body(0); err == nil {
		at.post(ctx, q.Path(), body)
	}
}

// forge posts proofs of other statements, and bytes that are not a proof.
func (at *attacker) forge(ctx context.Context) {
	at.repeat(ctx, busyPause, func() {
		q, ok := at.newSpend(ctx)
		if !ok {
			return
		}
		other := q.Inputs
		other.Nullifiers[0] = q.Inputs.Commitments[0]
		q.Proofs[0] = at.load.Simulator.Prove(&other, 0)
		if at.sent%3 == 0 {
			copy(q.Proofs[0][:64], q.Proofs[0][64:128])
		}
		at.postRequest(ctx, &q)
	})
}

// negate posts proofs with A negated. They verify as the other encoding of A, but the
// program refuses them. A relay that has seen no finalized transaction cannot know which
// encoding the program accepts.
func (at *attacker) negate(ctx context.Context) {
	at.repeat(ctx, calmPause, func() {
		q, ok := at.newSpend(ctx)
		if !ok {
			return
		}
		// The modulus of BN254's base field.
		prime, _ := new(big.Int).SetString("21888242871839275222246405745257275088696311157297823662689037894645226208583", 10)
		y := new(big.Int).SetBytes(q.Proofs[0][32:64])
		y.Sub(prime, y).FillBytes(q.Proofs[0][32:64])
		at.postRequest(ctx, &q)
	})
}

// overfill posts requests with one field that is far too long.
func (at *attacker) overfill(ctx context.Context) {
	at.repeat(ctx, busyPause, func() {
		q, ok := at.newSpend(ctx)
		if !ok {
			return
		}
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
		if names := slices.Sorted(maps.Keys(fields)); at.sent%2 == 0 {
			fields[names[at.sent/2%len(names)]] = long
		}
		if body, err = json.Marshal(fields); err == nil {
			at.post(ctx, q.Path(), body)
		}
	})
}

// stall asks for all commitments on many connections and reads nothing.
func (at *attacker) stall(ctx context.Context) {
	var reading sync.WaitGroup
	for i := range stalledReaders {
		reading.Go(func() {
			host := strings.TrimPrefix(at.relays[i%len(at.relays)].URL, "http://")
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
func (at *attacker) copyLanded(ctx context.Context) {
	var landed []load.Request
	for _, record := range at.load.Journal().Records() {
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
	at.repeat(ctx, calmPause, func() {
		q := landed[at.sent*7%len(landed)]
		if at.sent%2 == 0 { // every second one pays the attacker's own recipient
			q.Recipient = stranger().PublicKey()
		}
		at.postRequest(ctx, &q)
	})
}

// spendTwice spends a note at the relay and on the chain at the same time.
func (at *attacker) spendTwice(ctx context.Context) {
	at.repeat(ctx, calmPause, func() {
		q, ok := at.newSpend(ctx)
		if !ok {
			return
		}
		var spending sync.WaitGroup
		spending.Go(func() { at.direct(ctx, &q) })
		at.postRequest(ctx, &q)
		spending.Wait()
	})
}

// closeAccounts requests a swap. Whenever the token account that the relay creates for the
// output exists and is empty, it closes that account to get its rent.
func (at *attacker) closeAccounts(ctx context.Context) {
	at.next++
	var seed [ed25519.SeedSize]byte
	binary.BigEndian.PutUint64(seed[:], uint64(at.next)) //nolint:gosec // a number of hostile spends
	owner := solana.PrivateKey(ed25519.NewKeyFromSeed(seed[:]))
	root, err := at.chainReader.Root(ctx, rpc.CommitmentConfirmed)
	if err != nil {
		return
	}
	q, err := at.load.NewSwapRequest(ctx, at.next, root, owner.PublicKey())
	if err != nil {
		return
	}
	at.postRequest(ctx, &q)
	at.repeat(ctx, at.o.Slot, func() {
		if account := q.Swap.Terms.RecipientATA; at.exists(ctx, account) {
			key := stranger() // it gets the rent; closing fails while the account has tokens
			closing := token.NewCloseAccountInstruction(account, key.PublicKey(), owner.PublicKey(), nil).Build()
			_ = at.box.Send(ctx, closingUnits, false, []solana.PrivateKey{key, owner}, closing)
		}
	})
}
