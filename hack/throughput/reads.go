package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"github.com/relaypool/relaypool/hack/load"
)

// readsArgument makes the program a reader of a relay. In a process of its own it does not wait for the
// thousands of clients and the chain that run in this one, which take the time of its goroutines.
const readsArgument = "reads"

// readTimeout ends a read. One that fails counts as one that took so long.
const readTimeout = 10 * time.Second

// reads are how long GET requests took, by path. Failed were not answered with 200.
type reads struct {
	Took   map[string][]time.Duration
	Failed int
}

// startReads starts a reader of each path, so often a second. Its finish ends the reads.
func startReads(ctx context.Context, relay string, rate float64, paths ...string) (finish func() (reads, error), err error) {
	command := exec.CommandContext(ctx, os.Args[0], append([]string{readsArgument, relay, fmt.Sprint(rate)}, paths...)...) //nolint:gosec // this program
	command.Stderr = os.Stderr
	in, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start a reader: %w", err)
	}
	return func() (r reads, err error) {
		err = in.Close()
		err = errors.Join(err, json.NewDecoder(out).Decode(&r), command.Wait())
		for _, path := range paths {
			if err == nil && len(r.Took[path]) == 0 {
				err = fmt.Errorf("GET %s was not tried", path)
			}
		}
		return r, err
	}, nil
}

// runReads is the reader's process: it reads until its input ends, and prints what it measured.
func runReads(ctx context.Context, args []string) error {
	relay, paths := args[1], args[3:]
	rate, err := strconv.ParseFloat(args[2], 64)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // it ends when the bench closes it, or dies
		stop()
	}()
	return json.NewEncoder(os.Stdout).Encode(readAll(ctx, &http.Client{Timeout: readTimeout, Transport: &http.Transport{MaxIdleConnsPerHost: 1000}}, relay, rate, paths))
}

// readAll gets each path so often a second, whether or not the last answer has come, until ctx ends. It
// waits for the answers to all that it has sent.
func readAll(ctx context.Context, client *http.Client, relay string, rate float64, paths []string) (r reads) {
	r.Took = make(map[string][]time.Duration)
	var mu sync.Mutex
	var sent sync.WaitGroup
	for due, turn := time.Now(), 0; load.Sleep(ctx, time.Until(due)); turn++ {
		path := paths[turn%len(paths)]
		sent.Go(func() {
			began := time.Now()
			err := readOnce(context.WithoutCancel(ctx), client, relay+path)
			took := time.Since(began)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				r.Failed++
				took = readTimeout
			}
			r.Took[path] = append(r.Took[path], took)
		})
		due = due.Add(time.Duration(float64(time.Second) / rate / float64(len(paths))))
	}
	sent.Wait()
	return r
}

func readOnce(ctx context.Context, client *http.Client, url string) error {
	_, err := pull(ctx, client, url, nil, http.StatusOK, io.Discard)
	return err
}
