package suite

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/e2e/cluster"
	"github.com/relaypool/relaypool/hack/load"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// answers is a server that says what it was sent.
type answers func(*http.Request) (*http.Response, error)

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) { return a(r) }

func TestWhatATourSendsToRelaysIsRemembered(t *testing.T) {
	t.Parallel()
	key := func(n byte) solana.PublicKey { return solana.PublicKey(bytes.Repeat([]byte{n, n + 1}, 16)) }
	transfer := load.Request{
		Inputs: shieldpool.PublicInputs{Nullifiers: [2][32]byte{{31: 1}, {31: 2}}, Commitments: [2][32]byte{{31: 3}, {31: 4}}},
		Proofs: [][shieldpool.ProofLength]byte{{1, 2, 3}}, Notes: [][]byte{{9, 8, 7}},
	}
	withdrawal := transfer
	withdrawal.Recipient = key(3)
	swap := withdrawal
	swap.Swap = &load.Swap{Terms: shieldpool.SwapTerms{OutputMint: key(7), RecipientATA: key(5), MinOutput: 7}}
	var bodies [][]byte
	for _, q := range []load.Request{transfer, withdrawal, swap} {
		body, err := q.Body(0)
		if err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, body)
	}
	// The chain and the router are asked as well.
	bodies = append(bodies, []byte(`{"jsonrpc":"2.0","id":1,"method":"getSlot"}`), []byte(`[]`), []byte("no JSON"))
	var received [][]byte
	ear := &overheard{next: answers(func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		received = append(received, body)
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, err
	})}
	client := http.Client{Transport: ear}
	for _, body := range bodies {
		answer, err := client.Post("http://demo:8080/transact", "application/json", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
	}
	if diff := cmp.Diff(bodies, received); diff != "" {
		t.Errorf("what was passed on (-want +got):\n%s", diff)
	}
	// The mint and the minimum are nobody's secret.
	swap.Swap = &load.Swap{Terms: shieldpool.SwapTerms{RecipientATA: key(5)}}
	var got []load.Request
	for _, r := range ear.records() {
		got = append(got, r.Requests...)
	}
	if diff := cmp.Diff([]load.Request{transfer, withdrawal, swap}, got); diff != "" {
		t.Errorf("what was heard (-want +got):\n%s", diff)
	}
}

func TestALogThatWasNotKeptFailsTheSearch(t *testing.T) {
	t.Parallel()
	if err := complete([]cluster.LostLog{{Pod: "postgres", Container: "postgres", Err: errors.New("gone")}}); err != nil {
		t.Errorf("the log of no relay: %v", err)
	}
	err := complete([]cluster.LostLog{{Pod: "demo-1", Container: relayContainer, Err: errors.New("gone")}})
	if err == nil || !strings.Contains(err.Error(), "relay of pod demo-1 was not kept") {
		t.Errorf("error %v, want one that names the pod", err)
	}
}
