// Command apibench measures the operator: how soon it has brought 10, 50 and 200
// RelayPools to what they declare, what it asks of the API server and of the
// chain for each of them, then and while nothing changes, and what memory and
// processor time it takes.
//
// The operator is a process of its own, the API server and its etcd are real, and
// so is the local chain. There is no node: a stand-in says of every Deployment
// that its pods are ready, and a purse funds every new key at once.
//
// Run it by make bench ARGS='-only operator'.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

// settings are what the flags say.
type settings struct {
	pools []int
	// window is how long calls are counted at rest, calm how long there has to be
	// no write before that.
	window, calm time.Duration
	// checkInterval of the RelayPools, in seconds; 0 leaves the default.
	checkInterval int32
	operator      string
	key           string
	state         string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "apibench:", err)
		os.Exit(1)
	}
}

func parse(args []string) (*settings, error) {
	s := &settings{pools: []int{10, 50, 200}}
	flags := flag.NewFlagSet("apibench", flag.ContinueOnError)
	flags.Func("pools", "`numbers` of RelayPools, with commas between them (default 10,50,200)", func(text string) error {
		s.pools = nil
		for word := range strings.SplitSeq(text, ",") {
			n, err := strconv.Atoi(word)
			if err != nil || n < 1 {
				return fmt.Errorf("%q is no number above zero", word)
			}
			s.pools = append(s.pools, n)
		}
		return nil
	})
	flags.DurationVar(&s.window, "window", 5*time.Minute, "how long calls are counted while nothing changes: as long as the rarest reading at rest, of generated keys")
	flags.DurationVar(&s.calm, "calm", 15*time.Second, "how long nothing has to be written before that")
	flags.StringVar(&s.operator, "operator", filepath.Join("bin", "operator"), "the operator's `program`")
	flags.StringVar(&s.key, "verifying-key", filepath.Join("hack", "circuit", "verification_key.json"), "`file` of the local chain's verifying key")
	flags.StringVar(&s.state, "state", filepath.Join(".run", "apibench"), "`folder` of the operator's logs")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	slices.Sort(s.pools) // each is compared with those before
	if flags.NArg() > 0 || s.window < time.Second {
		return nil, fmt.Errorf("want flags only and -window of at least 1s; received %d arguments more and %s", flags.NArg(), s.window)
	}
	return s, nil
}

func run(ctx context.Context, args []string) error {
	s, err := parse(args)
	if err != nil {
		return err
	}
	ctrl.SetLogger(logr.Discard()) // the libraries' own; what fails is told
	results, err := measureAll(ctx, s)
	if err != nil {
		return err
	}
	return write(os.Stdout, results, s)
}

// measureAll measures one number of RelayPools after the other, each on an API
// server and a chain of its own.
func measureAll(ctx context.Context, s *settings) (results []*result, err error) {
	if err := os.MkdirAll(s.state, 0o750); err != nil { //nolint:gosec // a flag of a program for development
		return nil, fmt.Errorf("make the folder of the logs: %w", err)
	}
	for _, n := range s.pools {
		r, err := measure(ctx, s, n)
		if err != nil {
			return nil, fmt.Errorf("measure %d RelayPools: %w; the operator's logs are in %s", n, err, s.state)
		}
		results = append(results, r)
	}
	return results, nil
}

// progress tells a person what is under way.
func progress(n int, format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s %3d RelayPools: %s\n", time.Now().Format(time.TimeOnly), n, fmt.Sprintf(format, args...))
}
