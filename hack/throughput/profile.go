package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/relaypool/relaypool/hack/load"
)

// profiler builds profiling into the relay without a change of the relay's source folder: an
// overlay for go build adds a file that serves net/http/pprof on a Unix socket in a private folder.
type profiler struct {
	// sockets is the folder of the sockets. out is the folder of the profiles.
	sockets, out string
}

const profiledSource = `package main

import (
	"fmt"
	"net"
	"net/http"
	_ "net/http/pprof"
	"os"
	"runtime"
)

func init() {
	runtime.SetMutexProfileFraction(10)
	l, err := net.Listen("unix", fmt.Sprintf(%q, os.Getpid()))
	if err != nil {
		return
	}
	go http.Serve(l, nil)
}
`

func (p *profiler) socket(pid int) string { return filepath.Join(p.sockets, fmt.Sprintf("%d", pid)) }

// overlay writes the file, and returns the path of the overlay description for go build.
func (p *profiler) overlay(root string) (path string, err error) {
	source, path := filepath.Join(p.sockets, "profile.go"), filepath.Join(p.sockets, "overlay.json")
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, "relay", "cmd", "relay", "profile_overlay.go"): source}})
	if err != nil {
		return "", fmt.Errorf("encode the overlay: %w", err)
	}
	return path, errors.Join(
		os.WriteFile(source, fmt.Appendf(nil, profiledSource, filepath.Join(p.sockets, "%d")), 0o600),
		os.WriteFile(path, text, 0o600))
}

// take profiles a relay for a while and writes the profiles under a name.
func (p *profiler) take(ctx context.Context, pid int, name string, d time.Duration) error {
	if err := os.MkdirAll(p.out, 0o750); err != nil {
		return fmt.Errorf("store profiles: %w", err)
	}
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", p.socket(pid))
	}}}
	defer client.CloseIdleConnections()
	seconds := fmt.Sprintf("?seconds=%.0f", d.Seconds())
	var all errgroup.Group
	for kind, file := range map[string]string{"profile": "cpu", "allocs": "allocs", "mutex": "mutex"} {
		all.Go(func() error {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://relay/debug/pprof/"+kind+seconds, http.NoBody)
			if err != nil {
				return err
			}
			answer, err := client.Do(request)
			if err != nil {
				return fmt.Errorf("profile the relay: %w", err)
			}
			content, err := io.ReadAll(answer.Body)
			if err := errors.Join(err, answer.Body.Close(), os.WriteFile(filepath.Join(p.out, name+"."+file+".pprof"), content, 0o600)); err != nil {
				return fmt.Errorf("store a profile: %w", err)
			}
			return nil
		})
	}
	return all.Wait()
}

// takeOwn profiles this process while a function runs.
func (p *profiler) takeOwn(name string, while func()) error {
	if err := os.MkdirAll(p.out, 0o750); err != nil {
		return fmt.Errorf("store profiles: %w", err)
	}
	file, err := os.Create(filepath.Join(p.out, name+".cpu.pprof"))
	if err != nil {
		return fmt.Errorf("store a profile: %w", err)
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return errors.Join(err, file.Close())
	}
	while()
	pprof.StopCPUProfile()
	return file.Close()
}

// profiles starts profiles of a window, if profiling is on. The result waits for their end.
func (s *benchRun) profiles(ctx context.Context, what string, d time.Duration) func() error {
	if s.profiler == nil || s.round > 0 {
		return func() error { return nil }
	}
	name := s.profileName(what)
	done := make(chan error, 2)
	go func() { done <- s.profiler.take(ctx, s.stand.Relays[0].PID(), "relay-"+name, d) }()
	// The chain runs in this process, with the clients.
	go func() { done <- s.profiler.takeOwn("chain-"+name, func() { load.Sleep(ctx, d) }) }()
	return func() error {
		err := errors.Join(<-done, <-done)
		list, readErr := s.stand.Statements(ctx)
		var text strings.Builder
		for _, st := range list {
			fmt.Fprintf(&text, "%10.1f ms total  %8.3f ms each  %8d calls  %8d rows  %s\n", st.TotalMS, st.MeanMS, st.Calls, st.Rows, strings.Join(strings.Fields(st.Query), " "))
		}
		return errors.Join(err, readErr, os.WriteFile(filepath.Join(s.profiler.out, "statements-"+name+".txt"), []byte(text.String()), 0o600))
	}
}

func (s *benchRun) profileName(what string) string {
	return fmt.Sprintf("%s-%d-%d", what, s.setup.Processes, s.setup.Rows)
}
