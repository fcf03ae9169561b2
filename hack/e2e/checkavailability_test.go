package e2e

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// call is a request of a client with its answer.
type call struct {
	// Sent is the time of the request. At is the time of its answer or failure.
	Sent, At time.Time
	// Status is the HTTP status; 0 without an answer.
	Status int
	// Accepted says that the answer accepts a submission.
	Accepted bool
}

// availability is how a fleet served its clients for a while.
type availability struct {
	// Calls are the requests sent; Accepted counts the accepted submissions.
	Calls, Accepted int
	// Refused counts the answers with 5xx or 429. Silent counts the calls without an answer.
	Refused, Silent int
	// Longest is the longest time in which no submission was accepted.
	Longest time.Duration
}

// served sums up the service between two times; the calls may be in any order. It counts
// the calls that were sent between them, and the acceptances that were received between
// them.
func served(calls []call, from, to time.Time) (s availability) {
	accepted := []time.Time{from, to}
	for i := range calls {
		c := &calls[i]
		if c.Accepted && isBetween(c.At, from, to) {
			s.Accepted++
			accepted = append(accepted, c.At)
		}
		if !isBetween(c.Sent, from, to) {
			continue
		}
		s.Calls++
		switch {
		case c.Status == 0:
			s.Silent++
		case c.Status/100 == 5 || c.Status == 429:
			s.Refused++
		}
	}
	s.Longest = longestGap(accepted)
	return s
}

func isBetween(at, from, to time.Time) bool { return !at.Before(from) && !at.After(to) }

func longestGap(times []time.Time) (most time.Duration) {
	slices.SortFunc(times, time.Time.Compare)
	for i := 1; i < len(times); i++ {
		most = max(most, times[i].Sub(times[i-1]))
	}
	return most
}

// String summarises the service.
func (s availability) String() string {
	return fmt.Sprintf("%d of %d calls refused for now, %d without an answer; %d submissions accepted, at most %.1f s apart",
		s.Refused, s.Calls, s.Silent, s.Accepted, s.Longest.Seconds())
}

// serviceBounds are the limits of a service.
type serviceBounds struct {
	// MaxSilence is the longest time without an accepted submission.
	MaxSilence time.Duration
	// MaxFailed is the greatest share of calls, from 0 to 1, that are refused or stay
	// without an answer.
	MaxFailed float64
}

// within returns an error that says which limit was exceeded.
func (s availability) within(b serviceBounds) error {
	switch {
	case s.Calls == 0:
		return errors.New("clients sent no request: the service was not tested")
	case s.Longest > b.MaxSilence:
		return fmt.Errorf("no submission was accepted for %.1f s, expected %.0f s at most", s.Longest.Seconds(), b.MaxSilence.Seconds())
	case float64(s.Refused+s.Silent) > b.MaxFailed*float64(s.Calls):
		return fmt.Errorf("%d of %d calls were refused and %d stayed without an answer, expected %.0f %% together at most", s.Refused, s.Calls, s.Silent, 100*b.MaxFailed)
	}
	return nil
}
