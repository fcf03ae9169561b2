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
	at killPoint

	mu      sync.Mutex
	calls   map[string]int // by RPC method or SQL statement
	process *os.Process
	killed  bool
}

// killPoint says when to kill the process: at the n-th call of a kind. The zero killPoint kills nothing.
type killPoint struct {
	call  string
	n     int
	after bool
}

func (d killPoint) String() string {
	when := "before"
	if d.after {
		when = "after"
	}
	return fmt.Sprintf("%s call %d of %q", when, d.n, d.call)
}

func newKiller(t *testing.T, at killPoint) *killer {
	t.Helper()
	return &killer{T: t, at: at, calls: map[string]int{}}
}

// call counts a call. The caller calls done when the call has had its effect. Both report
// whether the process is still alive.
func (k *killer) call(what string) (done func() bool, alive bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.calls[what]++
	kills := !k.killed && k.calls[what] == k.at.n && what == k.at.call
	if kills && !k.at.after {
		k.kill()
		return nil, false
	}
	return func() bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		if kills {
			k.kill()
		}
		return !kills
	}, true
}

func (k *killer) kill() {
	k.killed = true
	if err := k.process.Kill(); err != nil {
		k.Errorf("kill %s: %v", k.at, err)
	}
}

// chain returns a proxy to the chain at the URL.
func (k *killer) chain(chainURL string) http.Handler {
	target, err := url.Parse(chainURL)
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
		answer := &delayedResponse{header: http.Header{}}
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

// delayedResponse stores an answer until it is sent on.
type delayedResponse struct {
	header http.Header
	status int
	body   strings.Builder
}

func (h *delayedResponse) Header() http.Header         { return h.header }
func (h *delayedResponse) WriteHeader(status int)      { h.status = status }
func (h *delayedResponse) Write(b []byte) (int, error) { return h.body.Write(b) }

// database starts a proxy to the database at the URL, and returns the proxy's URL.
func (k *killer) database(databaseURL string) string {
	u, err := url.Parse(databaseURL)
	noError(k.T, err)
	query := u.Query()
	name := ".s.PGSQL." + query.Get("port")
	server := filepath.Join(query.Get("host"), name)
	dir, err := os.MkdirTemp("", "relay") // the path of a Unix socket must be short
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

// serve forwards a connection message by message. A call of the client is a Query, or ends
// with Sync; its answer ends with ReadyForQuery.
func (k *killer) serve(client net.Conn, address string) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("unix", address)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	var mu sync.Mutex
	var pending []func() bool // calls without an answer
	go func() {
		defer func() { _, _ = client.Close(), server.Close() }()
		from := bufio.NewReader(server)
		for {
			kind, message, err := postgresMessage(from)
			if err != nil {
				return
			}
			mu.Lock()
			if kind == 'Z' && len(pending) > 0 {
				done := pending[0]
				if pending = pending[1:]; !done() {
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
			statement = statementPrefix(string(message[5:]))
		}
		if kind == 'S' || kind == 'Q' {
			done, alive := k.call(statement)
			if !alive {
				return
			}
			mu.Lock()
			pending = append(pending, done)
			mu.Unlock()
		}
		if _, err := server.Write(message); err != nil {
			return
		}
	}
}

// statementPrefix returns the first words of a statement. It leaves out the name under which the
// statement is prepared. Executing a prepared statement counts as the last prepared one.
func statementPrefix(message string) string {
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

// run starts the relay and waits for its end. It returns the whole output and the
// exit code, which is -1 when the relay was killed.
func (k *killer) run(args ...string) (code int, output string) {
	k.Helper()
	command := exec.CommandContext(k.Context(), os.Args[0], args...)
	command.Env = append(os.Environ(), asRelay+"=1")
	var out buffer
	command.Stdout, command.Stderr = &out, &out
	k.mu.Lock() // a call of the relay waits until k.process is set
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
