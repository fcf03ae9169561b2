package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/relaypool/relaypool/hack/load"
)

type tally struct {
	done int
	took []time.Duration
	// last is the id of a submission that succeeded.
	last uuid.UUID
	// refused counts answers other than 2xx by status and code.
	refused map[string]int
}

func (s *benchRun) tally(calls []load.Answer, from, to time.Time) (t tally) {
	t.refused = make(map[string]int)
	for i := range calls {
		switch c := &calls[i]; {
		case c.Status == 0 || c.At.Before(from) || !c.At.Before(to):
		case c.Status/100 == 2:
			t.done++
			t.took = append(t.took, c.At.Sub(c.Sent))
			t.last = c.RequestID
		default:
			t.refused[strings.TrimSpace(fmt.Sprintf("%d %s", c.Status, c.Code))]++
		}
	}
	slices.Sort(t.took)
	return t
}

// checkCompleted returns an error if no request succeeded. It adds a note for refusals, which
// should not occur here; on an overloaded machine they do.
func (s *benchRun) checkCompleted(what string, t *tally) error {
	if t.done == 0 {
		return fmt.Errorf("nothing was answered with a 2xx: %s", t.refusals())
	}
	s.noteRefusals(what, t)
	return nil
}

func (s *benchRun) noteRefusals(what string, t *tally) {
	if len(t.refused) > 0 {
		s.report.Note("Unexpected refusals while %s was measured (%s, round %d): %s; %d requests succeeded.", what, s.label, s.round+1, t.refusals(), t.done)
	}
}

func (t *tally) refusals() string {
	var texts []string
	for _, what := range slices.Sorted(maps.Keys(t.refused)) {
		texts = append(texts, fmt.Sprintf("%d times %s", t.refused[what], what))
	}
	return strings.Join(texts, ", ")
}
