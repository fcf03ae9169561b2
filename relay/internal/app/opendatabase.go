package app

import (
	"context"
	"time"

	"github.com/relaypool/relaypool/relay/internal/config"
	"github.com/relaypool/relaypool/relay/internal/store"
)

// databaseRetry is the pause between tries to reach the database at start.
const databaseRetry = time.Second

// DatabaseFiles returns the files that secure the connections to the database.
func DatabaseFiles(url config.DatabaseURL) store.TLSFiles {
	return store.TLSFiles{CA: url.CAFile, ClientCert: url.ClientCertFile, ClientKey: url.ClientKeyFile}
}

// openDatabase connects to the database and migrates it. It waits for an unreachable
// database, because a process that exited instead would be restarted with growing delays.
func (a *App) openDatabase(ctx context.Context) error {
	var err error
	url, files := a.options.Config.DatabaseURL.Reveal(), DatabaseFiles(a.options.Config.DatabaseURL)
	if a.db, err = store.Open(ctx, url, files, a.options.Config.Database.MaxConnections); err != nil {
		return err
	}
	if a.heartbeats, err = store.Open(ctx, url, files, 1); err != nil {
		return err
	}
	for logged := false; ; logged = true {
		err = a.migrate(ctx)
		if !store.Unreachable(err) {
			break
		}
		if !logged {
			a.log.WarnContext(ctx, "database unreachable; retrying until it answers", "error", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(databaseRetry):
		}
	}
	if err != nil {
		return err
	}
	if a.store, err = store.New(a.db); err == nil {
		a.store.Heartbeats = a.heartbeats
	}
	return err
}

func (a *App) migrate(ctx context.Context) error {
	if err := store.Migrate(ctx, a.db, a.log); err != nil {
		return err
	}
	return store.WarnUnreplicated(ctx, a.db, a.log)
}
