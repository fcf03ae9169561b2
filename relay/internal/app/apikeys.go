package app

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/relaypool/relaypool/relay/internal/config"
	"github.com/relaypool/relaypool/relay/internal/httpapi"
)

// apiKeysInterval is how often the file of API keys is read again.
const apiKeysInterval = 5 * time.Second

// apiKeys are the API keys that are valid now.
type apiKeys struct {
	mu      sync.Mutex
	current []httpapi.APIKey
	// seen is what was last read. It becomes current when the next reading is the same, because a
	// file may be read while it is written.
	seen []config.APIKey
	// fault is why the file could not be read last; nil if it could.
	fault error
}

func (k *apiKeys) now() []httpapi.APIKey {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.current
}

// problem returns why the file of API keys cannot be read, for /health.
func (k *apiKeys) problem(context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fault == nil {
		return nil
	}
	return fmt.Errorf("the API keys that were read before remain valid, also those that were taken out since: %w", k.fault)
}

// set makes the keys valid, and all others invalid.
func (k *apiKeys) set(keys []config.APIKey) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.use(keys)
}

func (k *apiKeys) use(keys []config.APIKey) {
	k.seen, k.current = keys, make([]httpapi.APIKey, len(keys))
	for i, key := range keys {
		k.current[i] = httpapi.APIKey(key)
	}
}

// reread takes over the result of a reading. It returns what is to be logged: whether the valid keys
// changed, and a fault that is new.
func (k *apiKeys) reread(keys []config.APIKey, err error) (changed bool, fault error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil {
		if k.fault == nil || k.fault.Error() != err.Error() {
			fault = err
		}
		k.fault = err
		return false, fault
	}
	k.fault = nil
	if !slices.Equal(keys, k.seen) {
		k.seen = keys
		return false, nil
	}
	if slices.EqualFunc(keys, k.current, func(a config.APIKey, b httpapi.APIKey) bool { return httpapi.APIKey(a) == b }) {
		return false, nil
	}
	k.use(keys)
	return true, nil
}

// rereadAPIKeys takes over changes of the file of API keys until ctx ends.
func (a *App) rereadAPIKeys(ctx context.Context) {
	tick := time.NewTicker(apiKeysInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		changed, fault := a.apiKeys.reread(a.options.Config.ReadAPIKeys())
		switch {
		case fault != nil:
			a.log.ErrorContext(ctx, "API keys could not be read again; those that were read before remain valid", "error", fault)
		case changed:
			a.log.InfoContext(ctx, "API keys changed", "keys", len(a.apiKeys.now()))
		}
	}
}
