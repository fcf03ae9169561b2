package crowd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/relaypool/relaypool/hack/load"
)

// lostPause is the pause after a request without an answer.
const lostPause = time.Second

// Insist is Flood for clients that repeat a request that is refused only for the moment, when its
// Retry-After has passed.
func (c *Crowd) Insist(ctx context.Context, clients int, ramp time.Duration, next Source) {
	c.each(ctx, clients, ramp, func(int) {
		for ctx.Err() == nil {
			body, ok := next()
			if !ok {
				return
			}
			for a := c.submit(ctx, body, ""); refusedForNow(a); a = c.submit(ctx, body, "") {
				pause := a.RetryAfter
				if a.Status == 0 {
					pause = lostPause
				}
				if !load.Sleep(ctx, pause) {
					return
				}
			}
		}
	})
}

// Read gets each path so often a second, whether or not the last answer has come, until ctx ends. It returns
// how long each answer took, and how many were not 200.
func (c *Crowd) Read(ctx context.Context, rate float64, paths ...string) (took map[string][]time.Duration, failed int) {
	var mu sync.Mutex
	took = make(map[string][]time.Duration)
	var reads sync.WaitGroup
	for due, turn := c.Now(), 0; load.Sleep(ctx, due.Sub(c.Now())); turn++ {
		path := paths[turn%len(paths)]
		reads.Go(func() {
			began := c.Now()
			err := c.get(ctx, path)
			mu.Lock()
			defer mu.Unlock()
			if ctx.Err() == nil {
				took[path] = append(took[path], c.Now().Sub(began))
				if err != nil {
					failed++
				}
			}
		})
		due = due.Add(time.Duration(float64(time.Second) / rate / float64(len(paths))))
	}
	reads.Wait()
	return took, failed
}

func (c *Crowd) get(ctx context.Context, path string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Relays[0]+path, http.NoBody)
	if err != nil {
		return err
	}
	answer, err := c.HTTP.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }() // it was read to its end, or failed
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s answered %d", path, answer.StatusCode)
	}
	return nil
}

// Forge returns a request with the proof of another.
func Forge(body, other []byte) ([]byte, error) {
	var request, from map[string]json.RawMessage
	if err := json.Unmarshal(body, &request); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(other, &from); err != nil {
		return nil, err
	}
	request["proof_bytes"] = from["proof_bytes"]
	return json.Marshal(request)
}
