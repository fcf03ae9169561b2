package app

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/internal/httpapi"
	"github.com/relaypool/relaypool/relay/internal/ratelimit"
	"github.com/relaypool/relaypool/relay/internal/viewingkey"
)

const (
	// listStall is how long a client of GET /commitments may take to read some 200 KB.
	// listTime is how long it may take to read the whole answer, which has up to 10 MB.
	listStall = 10 * time.Second
	listTime  = 90 * time.Second
)

// openOperations serves probes and metrics from the start, because a relay that waits for
// its database is alive, but not ready.
func (a *App) openOperations(ctx context.Context) error {
	var listen net.ListenConfig
	var err error
	if a.opsListener, err = listen.Listen(ctx, "tcp", a.options.Config.OperationsListen); err != nil {
		return fmt.Errorf("--operations-listen: %w", err)
	}
	details := func(w http.ResponseWriter, r *http.Request) {
		if h := a.detailsHandler.Load(); h != nil {
			(*h).ServeHTTP(w, r)
			return
		}
		http.Error(w, errStarting.Error(), http.StatusServiceUnavailable)
	}
	a.operations = httpapi.NewServer(a.options.Config.OperationsListen, a.metrics.OperationsHandler(a.ready, http.HandlerFunc(details)), contract.CallTimeout, a.log)
	go a.serve(a.operations, a.opsListener)
	return nil
}

func (a *App) openServers(ctx context.Context) error {
	c := a.options.Config
	keys, err := viewingkey.New(viewingkey.Options{
		Store: a.store, Messages: c.Profile.SignInMessages, CompliancePublicKey: c.CompliancePublicKey, Random: rand.Reader, Now: time.Now,
	})
	if err != nil {
		return err
	}
	a.requests = ratelimit.New(ratelimit.Options{
		Store: a.store, Secret: []byte(c.DatabaseURL.Reveal()), Now: time.Now, Log: a.log, // the same for the fleet, and usually with a password
	})
	var apiKeys func() []httpapi.APIKey
	if len(c.APIKeys) > 0 {
		a.apiKeys.set(c.APIKeys)
		apiKeys = a.apiKeys.now
	}
	handler, err := httpapi.New(httpapi.Options{
		Admission: a.admission, Submissions: a.reader, Commitments: a.store.Commitments(a.pool.Address), Tree: a.poolReader, ViewingKeys: keys, Health: a,
		ProcessedCommitments: a.commitmentIndex.Processed, FinalCommitments: a.commitmentIndex.Final,
		Info: httpapi.Info{
			Version: a.options.Version, Build: a.options.Build, Profile: c.Profile,
			NoteBounds: a.admission.NoteBounds(), NoteBoundsByFormat: a.admission.NoteBoundsByFormat, ComplianceKey: c.CompliancePublicKey, Swaps: a.swapsInfo(),
		},
		Log: a.log, Observer: a.metrics, Now: time.Now, NewID: uuid.NewString, CallTimeout: contract.CallTimeout,
		ListStall: listStall, ListTime: listTime,
		WaitDefault: c.Wait, WaitMax: c.WaitMax, RatePerMinute: c.RateLimit, ClientIPHeader: c.ClientIPHeader, CORSOrigins: c.CORSOrigins, APIKeys: apiKeys, RequestCounter: a.requests,
	})
	if err != nil {
		return err
	}
	var listen net.ListenConfig
	if a.apiListener, err = listen.Listen(ctx, "tcp", c.Listen); err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	a.api = httpapi.NewServer(c.Listen, handler, contract.CallTimeout+c.WaitMax, a.log)
	details := handler.Operations()
	a.detailsHandler.Store(&details)
	a.initialised.Store(true)
	return nil
}
