// Command monitoring writes what is generated for Prometheus, Grafana and their
// readers: the dashboards of the chart and the list of the alerts; and, when it is
// asked for them, the pictures of the dashboards, from a fleet that it runs for some
// minutes.
//
// It is a module of its own, so that Prometheus stays out of the product.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/relaypool/relaypool/hack/monitoring/alerts"
	"github.com/relaypool/relaypool/hack/monitoring/boards"
	"github.com/relaypool/relaypool/hack/monitoring/grafana"
	"github.com/relaypool/relaypool/hack/monitoring/live"
	"github.com/relaypool/relaypool/hack/monitoring/picture"
	"github.com/relaypool/relaypool/hack/monitoring/prom"
)

//go:generate go run . -root ../..

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "monitoring:", err)
		stop()
		os.Exit(1) //nolint:gocritic // what is deferred has been done
	}
}

func run(ctx context.Context) error {
	root := flag.String("root", ".", "`folder` of the checkout")
	pictures := flag.Bool("pictures", false, "draw docs/guides/monitoring-*.svg from a fleet that is run for it, too")
	long := flag.Duration("duration", 4*time.Minute, "how long that fleet is loaded")
	rate := flag.Float64("rate", 5, "new `spends` a second, on average")
	flag.Parse()
	absolute, err := filepath.Abs(*root)
	if err != nil {
		return err
	}
	if err := generate(absolute); err != nil || !*pictures {
		return err
	}
	return draw(ctx, absolute, *long, *rate)
}

// generate writes every generated file.
func generate(root string) error {
	list, err := alerts.List(root)
	if err != nil {
		return err
	}
	if err := write(filepath.Join(root, alerts.Page), list); err != nil {
		return err
	}
	for _, b := range boards.All() {
		content, err := b.JSON()
		if err != nil {
			return err
		}
		if err := write(filepath.Join(root, boards.Folder, boards.File(b)), content); err != nil {
			return err
		}
	}
	return nil
}

func write(file string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		return fmt.Errorf("write a generated file: %w", err)
	}
	if err := os.WriteFile(file, content, 0o644); err != nil { //nolint:gosec // a public file of the tree
		return fmt.Errorf("write a generated file: %w", err)
	}
	return nil
}

const (
	slot   = 200 * time.Millisecond
	scrape = 3 * time.Second
)

// draw runs a fleet and writes the pictures.
func draw(ctx context.Context, root string, long time.Duration, rate float64) (err error) {
	state, err := os.MkdirTemp("", "relaypool-pictures-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(state)) }()
	// Postgres may run as another user, who has to pass.
	if err := os.Chmod(state, 0o711); err != nil { //nolint:gosec // see above
		return fmt.Errorf("make a folder: %w", err)
	}
	done, err := live.Do(ctx, live.Options{Root: root, State: state, Long: long, Slot: slot, Scrape: scrape, Rate: rate, Progress: os.Stderr})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done.Close()) }()
	for _, b := range boards.All() {
		drawn, err := board(ctx, done, b)
		if err != nil {
			return err
		}
		file := filepath.Join(root, "docs", "guides", "monitoring-"+b.UID[len("relaypool-"):]+".svg")
		if err := write(file, picture.SVG(drawn)); err != nil {
			return err
		}
	}
	return nil
}

// board asks a board's queries of a run.
func board(ctx context.Context, done *live.Run, b *grafana.Board) (*picture.Board, error) {
	out := &picture.Board{
		Board: b, From: done.From, To: done.To, Found: map[string][]prom.Series{}, Missing: live.Missing,
		Ran: fmt.Sprintf("Two relays on the local chain for %s; an operator that sees the same chain, and no pods.", done.To.Sub(done.From).Round(time.Second)),
	}
	for _, e := range done.Events {
		out.Events = append(out.Events, picture.Event{At: e.At, What: e.What})
	}
	for i := range b.Rows {
		for j := range b.Rows[i].Panels {
			for _, q := range b.Rows[i].Panels[j].Queries {
				series, err := done.Query(ctx, q.Expr)
				if err != nil {
					return nil, err
				}
				out.Found[q.Expr] = series
			}
		}
	}
	return out, nil
}
