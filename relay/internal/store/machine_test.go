package store

import (
	"testing"

	"github.com/relaypool/relaypool/relay/internal/submission"
)

// Move is something that happens to a submission's row.
type Move string

// The moves. Each is one write of the Store. All but MoveClaim need the claim's lease.
const (
	// MoveClaim acquires the lease of a row that is due.
	MoveClaim Move = "claim"
	// MoveAttempt commits a signed transaction, before its first send.
	MoveAttempt Move = "attempt"
	// MoveRelease releases the lease.
	MoveRelease Move = "release"
	// MoveComplete records a landing that is confirmed.
	MoveComplete Move = "complete"
	// MoveFinalize ends the tracking of a landing that no fork can undo any more.
	MoveFinalize Move = "finalize"
	// MoveReopen removes a landing that was on an abandoned fork.
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

// Next returns the state that a move leads to. ok is false when the state does not
// allow the move.
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
		"a pending submission is claimed":                    {submission.Pending, MoveClaim, submission.Processing},
		"a processing submission is claimed again":           {submission.Processing, MoveClaim, submission.Processing},
		"a completed submission is claimed":                  {submission.Completed, MoveClaim, submission.Completed},
		"a failed submission is not claimed":                 {submission.Failed, MoveClaim, ""},
		"no attempt is recorded before a claim":              {submission.Pending, MoveAttempt, ""},
		"no attempt is recorded for a completed submission":  {submission.Completed, MoveAttempt, ""},
		"no attempt is recorded for a failed submission":     {submission.Failed, MoveAttempt, ""},
		"an attempt is recorded for a processing submission": {submission.Processing, MoveAttempt, submission.Processing},
		"a processing submission completes":                  {submission.Processing, MoveComplete, submission.Completed},
		"a failed submission does not complete":              {submission.Failed, MoveComplete, ""},
		"a completed submission is finalized":                {submission.Completed, MoveFinalize, submission.Completed},
		"a processing submission is not finalized":           {submission.Processing, MoveFinalize, ""},
		"a completed submission is reopened":                 {submission.Completed, MoveReopen, submission.Processing},
		"a failed submission is not reopened":                {submission.Failed, MoveReopen, ""},
		"a processing submission fails":                      {submission.Processing, MoveFail, submission.Failed},
		"a completed submission does not fail":               {submission.Completed, MoveFail, ""},
		"a pending submission does not fail":                 {submission.Pending, MoveFail, ""},
		"a processing submission is released":                {submission.Processing, MoveRelease, submission.Processing},
		"a completed submission is released":                 {submission.Completed, MoveRelease, submission.Completed},
		"an unknown move is not allowed":                     {submission.Processing, "unknown", ""},
		"an unknown state allows no move":                    {"unknown", MoveClaim, ""},
		"a pending submission does not complete":             {submission.Pending, MoveComplete, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, ok := Next(test.from, test.move); got != test.want || ok != (test.want != "") {
				t.Errorf("next state is %q (allowed: %v), want %q", got, ok, test.want)
			}
		})
	}
}
