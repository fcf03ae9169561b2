package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// asRelay makes the test's own program run as the relay, so that it can be killed.
const asRelay = "RELAYPOOL_TEST_AS_RELAY"

// killer is a proxy between a process and its chain and database. It kills the process
// before or after a call: before the call is passed on, or after the call had its effect
// and before the answer comes back.
type killer struct {
	*testing.T
	at death

	mu      sync.Mutex
	calls   map[string]int // by what they are
	process *os.Process
	killed  bool
}

// death is when a process dies: at the n-th call of a kind. The zero death never happens.
type death struct {
	call  string
	n     int
	after bool
}

func (d death) String() string {
	when := "before"
	if d.after {
		when = "after"
	}
	return fmt.Sprintf("%s call %d of %q", when, d.n, d.call)
}

func newKiller(t *testing.T, at death) *killer {
	t.Helper()
	return &killer{T: t, at: at, calls: map[string]int{}}
}

// call counts a call, and is called again with done when the call has had its effect. It
// returns false when the process is dead.
func (k *killer) call(what string) (done func() bool, alive bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.calls[what]++
	mine := !k.killed && k.calls[what] == k.at.n && what == k.at.call
	if mine && !k.at.after {
		k.kill()
		return nil, false
	}
	return func() bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		if mine {
			k.kill()
		}
		return !mine
	}, true
}

func (k *killer) kill() {
	k.killed = true
	if err := k.process.Kill(); err != nil {
		k.Errorf("kill %s: %v", k.at, err)
	}
}

// chain returns a URL of the chain at the URL, through the killer.
func (k *killer) chain(at string) http.Handler {
	target, err := url.Parse(at)
	noError(k.T, err)
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, ErrorHandler: func(http.ResponseWriter, *http.Request, error) {}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the process is dead
		}
		method := "a call"
		if _, rest, found := strings.Cut(string(body), `"method":"`); found {
			method, _, _ = strings.Cut(rest, `"`)
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		done, alive := k.call(method)
		if !alive {
			panic(http.ErrAbortHandler)
		}
		answer := &held{header: http.Header{}}
		proxy.ServeHTTP(answer, r)
		if !done() {
			panic(http.ErrAbortHandler)
		}
		for name, values := range answer.header {
			w.Header()[name] = values
		}
		w.WriteHeader(max(answer.status, http.StatusOK))
		_, _ = io.WriteString(w, answer.body.String()) // a dead process reads nothing
	})
}

// held delays an answer.
type held struct {
	header http.Header
	status int
	body   strings.Builder
}

func (h *held) Header() http.Header         { return h.header }
func (h *held) WriteHeader(status int)      { h.status = status }
func (h *held) Write(b []byte) (int, error) { return h.body.Write(b) }

// database returns a URL of the database at the URL, through the killer.
func (k *killer) database(at string) string {
	u, err := url.Parse(at)
	noError(k.T, err)
	query := u.Query()
	name := ".s.PGSQL." + query.Get("port")
	server := filepath.Join(query.Get("host"), name)
	dir, err := os.MkdirTemp("", "relay") // a socket's path is short
	noError(k.T, err)
	listener, err := net.Listen("unix", filepath.Join(dir, name))
	noError(k.T, err)
	var serving sync.WaitGroup
	k.Cleanup(func() {
		_ = listener.Close() // this only ends the accept loop
		serving.Wait()
		noError(k.T, os.RemoveAll(dir))
	})
	serving.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { k.serve(client, server) })
		}
	})
	query.Set("host", dir)
	u.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20")
	return u.String()
}

// serve passes a connection on, in Postgres' own messages: a call of the client
// ends with Sync or is a Query, its answer with ReadyForQuery.
func (k *killer) serve(client net.Conn, address string) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("unix", address)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	var mu sync.Mutex
	var under []func() bool // calls under way
	go func() {
		defer func() { _, _ = client.Close(), server.Close() }()
		from := bufio.NewReader(server)
		for {
			kind, message, err := postgresMessage(from)
			if err != nil {
				return
			}
			mu.Lock()
			if kind == 'Z' && len(under) > 0 {
				done := under[0]
				if under = under[1:]; !done() {
					mu.Unlock()
					return
				}
			}
			mu.Unlock()
			if _, err := client.Write(message); err != nil {
				return
			}
		}
	}()
	from := bufio.NewReader(client)
	started := make([]byte, 4)
	if _, err := io.ReadFull(from, started); err != nil {
		return
	}
	rest := make([]byte, binary.BigEndian.Uint32(started)-4)
	if _, err := io.ReadFull(from, rest); err != nil {
		return
	}
	if _, err := server.Write(append(started, rest...)); err != nil {
		return
	}
	statement := "a statement"
	for {
		kind, message, err := postgresMessage(from)
		if err != nil {
			return
		}
		if kind == 'P' || kind == 'Q' {
			statement = called(string(message[5:]))
		}
		if kind == 'S' || kind == 'Q' {
			done, alive := k.call(statement)
			if !alive {
				return
			}
			mu.Lock()
			under = append(under, done)
			mu.Unlock()
		}
		if _, err := server.Write(message); err != nil {
			return
		}
	}
}

// called returns the first words of a statement. It leaves out the name under which the
// statement is prepared; a prepared statement counts as the last one that was prepared.
func called(message string) string {
	if _, sql, found := strings.Cut(message, "\x00"); found && sql != "" {
		message = sql
	}
	words := strings.Fields(strings.ReplaceAll(message, "\x00", " "))
	return strings.Join(words[:min(len(words), 12)], " ")
}

func postgresMessage(from *bufio.Reader) (kind byte, message []byte, err error) {
	head := make([]byte, 5)
	if _, err := io.ReadFull(from, head); err != nil {
		return 0, nil, err
	}
	message = make([]byte, 1+binary.BigEndian.Uint32(head[1:]))
	copy(message, head)
	_, err = io.ReadFull(from, message[5:])
	return head[0], message, err
}

// run starts the relay and waits for its end. It returns the exit code, -1 when the relay
// was killed, and the whole output.
func (k *killer) run(args ...string) (code int, said string) {
	k.Helper()
	command := exec.CommandContext(k.Context(), os.Args[0], args...)
	command.Env = append(os.Environ(), asRelay+"=1")
	var out buffer
	command.Stdout, command.Stderr = &out, &out
	k.mu.Lock() // the relay makes no call before it can be killed
	err := command.Start()
	k.process = command.Process
	k.mu.Unlock()
	noError(k.T, err)
	err = command.Wait()
	if err != nil && command.ProcessState == nil {
		k.Fatal(err)
	}
	return command.ProcessState.ExitCode(), out.String()
}
