package store

import (
	"testing"

	"github.com/relaypool/relaypool/relay/internal/submission"
)

// Move is something that happens to a submission's row.
type Move string

// The moves. Each is one write of the Store, under a claim's lease.
const (
	// MoveClaim takes the lease of a row that is due.
	MoveClaim Move = "claim"
	// MoveAttempt commits a signed transaction, before its first send.
	MoveAttempt Move = "attempt"
	// MoveRelease releases the lease.
	MoveRelease Move = "release"
	// MoveComplete records a landing that is confirmed.
	MoveComplete Move = "complete"
	// MoveFinalize ends the watch over a landing that no fork can undo any more.
	MoveFinalize Move = "finalize"
	// MoveReopen takes a landing back whose fork died.
	MoveReopen Move = "reopen"
	// MoveFail ends a submission whose attempts can no longer land.
	MoveFail Move = "fail"
)

// transitions is the state machine: the states from which each move may be made, and
// the state after it. No other move is allowed; tests try every pair on the
// database.
var transitions = map[Move]map[submission.State]submission.State{
	MoveClaim:    {submission.Pending: submission.Processing, submission.Processing: submission.Processing, submission.Completed: submission.Completed},
	MoveAttempt:  {submission.Processing: submission.Processing},
	MoveRelease:  {submission.Processing: submission.Processing, submission.Completed: submission.Completed},
	MoveComplete: {submission.Processing: submission.Completed},
	MoveFinalize: {submission.Completed: submission.Completed},
	MoveReopen:   {submission.Completed: submission.Processing},
	MoveFail:     {submission.Processing: submission.Failed},
}

// States lists all states.
func States() []submission.State {
	return []submission.State{submission.Pending, submission.Processing, submission.Completed, submission.Failed}
}

// Moves lists all moves.
func Moves() []Move {
	return []Move{MoveClaim, MoveAttempt, MoveRelease, MoveComplete, MoveFinalize, MoveReopen, MoveFail}
}

// Next is the state that a move leads to; ok is false when the state does not
// allow it.
func Next(s submission.State, m Move) (next submission.State, ok bool) {
	next, ok = transitions[m][s]
	return next, ok
}

func TestNext(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		from submission.State
		move Move
		want submission.State // "" when the state does not allow the move
	}{
		"a pending one is claimed":                      {submission.Pending, MoveClaim, submission.Processing},
		"one under way is claimed again":                {submission.Processing, MoveClaim, submission.Processing},
		"a landed one is claimed to be tracked":         {submission.Completed, MoveClaim, submission.Completed},
		"a failed one is over":                          {submission.Failed, MoveClaim, ""},
		"nothing is signed before a claim":              {submission.Pending, MoveAttempt, ""},
		"nothing is signed for a landed one":            {submission.Completed, MoveAttempt, ""},
		"nothing is signed for a failed one":            {submission.Failed, MoveAttempt, ""},
		"one under way is signed for":                   {submission.Processing, MoveAttempt, submission.Processing},
		"one under way lands":                           {submission.Processing, MoveComplete, submission.Completed},
		"a failed one never lands":                      {submission.Failed, MoveComplete, ""},
		"a landed one becomes final":                    {submission.Completed, MoveFinalize, submission.Completed},
		"one under way does not become final":           {submission.Processing, MoveFinalize, ""},
		"a landed one is reopened when its fork dies":   {submission.Completed, MoveReopen, submission.Processing},
		"a failed one is never reopened":                {submission.Failed, MoveReopen, ""},
		"one under way fails":                           {submission.Processing, MoveFail, submission.Failed},
		"a landed one does not fail":                    {submission.Completed, MoveFail, ""},
		"a pending one does not fail untouched":         {submission.Pending, MoveFail, ""},
		"one under way is given back":                   {submission.Processing, MoveRelease, submission.Processing},
		"a landed one is given back":                    {submission.Completed, MoveRelease, submission.Completed},
		"an unknown move leads nowhere":                 {submission.Processing, "dance", ""},
		"an unknown state allows nothing":               {"limbo", MoveClaim, ""},
		"a pending one is not completed out of nothing": {submission.Pending, MoveComplete, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, ok := Next(test.from, test.move); got != test.want || ok != (test.want != "") {
				t.Errorf("leads to %q (%v), want %q", got, ok, test.want)
			}
		})
	}
}
