package app

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/relaypool/relaypool/relay/internal/config"
	"github.com/relaypool/relaypool/relay/internal/httpapi"
)

// apiKeysInterval is how often the file of API keys is read again.
const apiKeysInterval = 5 * time.Second

// apiKeys are the API keys that are valid now.
type apiKeys struct {
	current atomic.Pointer[[]httpapi.APIKey]
}

func (k *apiKeys) now() []httpapi.APIKey { return *k.current.Load() }

func (k *apiKeys) set(keys []config.APIKey) {
	var all []httpapi.APIKey
	for _, key := range keys {
		all = append(all, httpapi.APIKey(key))
	}
	k.current.Store(&all)
}

// rereadAPIKeys takes over changes of the file of API keys until ctx ends. A file that cannot be
// read, or is wrong, leaves the keys as they are.
func (a *App) rereadAPIKeys(ctx context.Context) {
	tick := time.NewTicker(apiKeysInterval)
	defer tick.Stop()
	failing := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		keys, err := a.options.Config.ReadAPIKeys()
		switch {
		case err == nil:
			failing = ""
			a.apiKeys.set(keys)
		case err.Error() != failing:
			failing = err.Error()
			a.log.ErrorContext(ctx, "API keys could not be read again; those that were read before remain valid", "error", err)
		}
	}
}
