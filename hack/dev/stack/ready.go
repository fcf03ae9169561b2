package stack

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/relaypool/relaypool/hack/process"
	"github.com/relaypool/relaypool/relay/openapi"
)

const (
	// startWithin is what a program gets to answer, on a machine that is busy
	// with something else.
	startWithin  = time.Minute
	callWithin   = 5 * time.Second
	pollInterval = 50 * time.Millisecond
)

// await asks until check is content. It fails at once when the process ends,
// and with the last complaint when the time is over.
func (s *Stack) await(ctx context.Context, p *process.Process, what string, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	for {
		err := once(ctx, check)
		if err == nil {
			return nil
		}
		select {
		case <-p.Exited():
			return p.Ended()
		case <-ctx.Done():
			return fmt.Errorf("wait until %s: %w: %w; the log is %s", what, ctx.Err(), err, p.Log())
		case <-poll.C:
		}
	}
}

// once bounds one call, so that a program that accepts connections and does not
// answer is asked again.
func once(ctx context.Context, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	return check(ctx)
}

func ready(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %s", url, answer.Status)
	}
	return errors.Join(err, answer.Body.Close())
}

// healthy asks the operations port's GET /health and repeats what is wrong.
func healthy(ctx context.Context, url string) error {
	client, err := openapi.NewClientWithResponses(url)
	if err != nil {
		return err
	}
	answer, err := client.GetHealthWithResponse(ctx)
	if err != nil {
		return err
	}
	report := answer.JSON200
	if report == nil {
		report = answer.JSON503
	}
	if report == nil {
		return fmt.Errorf("GET /health answers %s", answer.Status())
	}
	if report.Status == openapi.HealthStatusOk {
		return nil
	}
	var complaints []string
	for _, name := range slices.Sorted(maps.Keys(report.Checks)) {
		if c := report.Checks[name]; c.Status != openapi.HealthStatusOk {
			complaints = append(complaints, name+": "+told(c.Message))
		}
	}
	return fmt.Errorf("GET /health says %s (%s)", report.Status, strings.Join(complaints, "; "))
}

func told(message *string) string {
	if message == nil {
		return "not well"
	}
	return *message
}
