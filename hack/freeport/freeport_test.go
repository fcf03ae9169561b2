package freeport_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/relaypool/relaypool/hack/freeport"
)

func TestPortsAreDifferentFreeAndNotEphemeral(t *testing.T) {
	t.Parallel()
	addresses, err := freeport.Find(t.Context(), 200)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, address := range addresses {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
		if err != nil {
			t.Errorf("listen at a found port: %v", err)
			continue
		}
		_, text, _ := net.SplitHostPort(address)
		if port, err := strconv.Atoi(text); err != nil || port < 1024 || port >= 32768 || seen[address] {
			t.Errorf("found %s, want a different port from 1024 to 32767", address)
		}
		seen[address] = true
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	if len(seen) != 200 {
		t.Errorf("%d ports were found, want 200", len(seen))
	}
}

func TestFindStopsWhenTheContextEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := freeport.Find(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("found %v, error %v; want context.Canceled", got, err)
	}
}

// TestProcessesGetDifferentPorts reserves ports in two processes at the same time. A
// port belongs to one process until that process ends, even if it does not listen there.
func TestProcessesGetDifferentPorts(t *testing.T) {
	const child, n = "FREEPORT_TEST_CHILD", 2000
	addresses, err := freeport.Find(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv(child) != "" {
		fmt.Println(strings.Join(addresses, "\n"))
		return
	}
	other := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	other.Env = append(os.Environ(), child+"=1")
	out, err := other.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	otherAddresses := strings.Fields(string(out))
	if len(otherAddresses) < n {
		t.Fatalf("the other process found %d addresses, want %d", len(otherAddresses), n)
	}
	for _, address := range otherAddresses {
		if slices.Contains(addresses, address) {
			t.Fatalf("both processes found %s", address)
		}
	}
}

func TestPortsAreFreeWhileOtherProcessesStart(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var starts sync.WaitGroup
	for range 2 {
		starts.Go(func() {
			for ctx.Err() == nil {
				_ = exec.CommandContext(ctx, "true").Run()
			}
		})
	}
	taken := 0
	for range 300 {
		addresses, err := freeport.Find(t.Context(), 3)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range addresses {
			if freeport.Check(t.Context(), a) != nil {
				taken++
			}
		}
	}
	cancel()
	starts.Wait()
	if taken > 0 {
		t.Errorf("%d of 900 ports were taken, want none", taken)
	}
}
