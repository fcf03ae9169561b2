package crowd

import (
	"context"
	"encoding/json"
	"io"
	"math/bits"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/relaypool/relaypool/relay/contract"
)

const (
	// defaultLook is how often SDKs look at least.
	defaultLook = 2 * time.Second
	// priceAge is how old a price may be, and priceOf what it is asked for, in
	// lamports: about what a swap brings.
	priceAge = time.Second
	priceOf  = 30_000_000
)

// price is the market's, as clients know it. One question serves them all: what
// wallets ask is no part of what is measured.
type price struct {
	mu  sync.Mutex
	at  time.Time
	out uint64
}

// quote is what so many lamports buy, at a price that is not old.
func (c *Crowd) quote(lamports uint64) (uint64, error) {
	p := &c.price
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := c.o.Now(); now.Sub(p.at) > priceAge {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		out, err := c.o.Market.Quote(ctx, c.o.Market.Mint, priceOf)
		if err != nil {
			return 0, err
		}
		p.at, p.out = now, out
	}
	high, low := bits.Mul64(p.out, lamports)
	out, _ := bits.Div64(high, low, priceOf) // far more lamports than exist would overflow it
	return out, nil
}

func (c *Crowd) proveSwap(root [32]byte) ([]byte, error) {
	q, err := c.draw.DrawSwap(int(c.number.Add(1)), root, c.quote)
	if err != nil {
		return nil, err
	}
	return q.Body(0)
}

// path is the route of what the crowd sends.
func (c *Crowd) path() string {
	if c.o.Market != nil {
		return contract.TransactSwapPath
	}
	return contract.TransactPath
}

// follow looks at a swap until it has ended, as its client does, and completes
// the call: what is not executed has a code. A swap that nobody knows the end of
// when ctx ends counts as not answered.
func (c *Crowd) follow(ctx context.Context, id string, call *Call) {
	for sleep(ctx, c.o.Look) {
		state, code := c.look(ctx, id)
		if state != "completed" && state != "failed" {
			continue
		}
		call.Answered = c.o.Now()
		if state == "failed" {
			call.Status, call.Code = http.StatusConflict, code
		}
		return
	}
	call.Status = 0
}

// look asks for a swap once; empty when there is no answer.
func (c *Crowd) look(ctx context.Context, id string) (state, code string) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.relay()+strings.Replace(contract.StatusPath, "{id}", id, 1), http.NoBody)
	if err != nil {
		return "", ""
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return "", ""
	}
	defer func() { _ = answer.Body.Close() }() // read to its end
	var told struct {
		Data struct {
			Status string `json:"status"`
			Code   string `json:"error_code"`
		} `json:"data"`
	}
	if json.NewDecoder(io.LimitReader(answer.Body, maxAnswer)).Decode(&told) != nil {
		return "", ""
	}
	return told.Data.Status, told.Data.Code
}
