package pool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/relaypool/relaypool/relay/contract"
)

// BacklogReader asks a pod for the queue of its fleet.
type BacklogReader interface {
	// Backlog asks the pod with the IP address ip. It does not set Backlog.At: the caller
	// does.
	Backlog(ctx context.Context, ip string) (Backlog, error)
}

// HTTPBacklog is a BacklogReader that calls the operations port of pods.
type HTTPBacklog struct {
	// Client is the HTTP client. Its transport should keep no idle connections, because
	// pods end.
	Client *http.Client
}

// StatusError is the error for an answer with an HTTP status other than 200.
type StatusError struct{ Status int }

// Error returns the status.
func (e *StatusError) Error() string {
	return fmt.Sprintf("expected status 200, received %d", e.Status)
}

// NewHTTPBacklog makes an HTTPBacklog that keeps no connections and follows no redirects.
func NewHTTPBacklog() HTTPBacklog {
	return HTTPBacklog{Client: &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// maxAnswer bounds a pod's answer, in bytes.
const maxAnswer = 64 << 10

// Backlog implements BacklogReader.
func (h HTTPBacklog) Backlog(ctx context.Context, ip string) (Backlog, error) {
	url := "http://" + net.JoinHostPort(ip, strconv.Itoa(contract.OperationsPort)) + contract.BacklogPath
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return Backlog{}, fmt.Errorf("ask for the backlog: %w", err)
	}
	response, err := h.Client.Do(request)
	if err != nil {
		return Backlog{}, fmt.Errorf("ask for the backlog: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return Backlog{}, fmt.Errorf("ask for the backlog: %w", &StatusError{response.StatusCode})
	}
	var answer struct {
		Due  *int64           `json:"due_count"`
		Age  int64            `json:"oldest_due_age_seconds"`
		Held map[string]int64 `json:"held"`
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(&answer); err != nil {
		return Backlog{}, fmt.Errorf("read the backlog: %w", err)
	}
	if answer.Due == nil || *answer.Due < 0 {
		return Backlog{}, errors.New("read the backlog: expected due_count with a number of 0 or more")
	}
	if answer.Age < 0 {
		return Backlog{}, errors.New("read the backlog: expected oldest_due_age_seconds with a number of 0 or more")
	}
	return Backlog{Due: *answer.Due, Oldest: time.Duration(answer.Age) * time.Second, Held: answer.Held}, nil
}
