package submission

// Move is something that happens to a submission's row.
type Move string

// The moves. Each is one write of the Store, under the lease that Claim gives.
const (
	// MoveClaim takes the lease of a row that is due.
	MoveClaim Move = "claim"
	// MoveAttempt commits a signed transaction, before its first send.
	MoveAttempt Move = "attempt"
	// MoveRelease gives the lease back.
	MoveRelease Move = "release"
	// MoveComplete records a landing that is confirmed.
	MoveComplete Move = "complete"
	// MoveFinalize ends the watch over a landing that no fork can undo any more.
	MoveFinalize Move = "finalize"
	// MoveReopen takes a landing back whose fork died.
	MoveReopen Move = "reopen"
	// MoveFail ends a submission of which no attempt can land any more.
	MoveFail Move = "fail"
)

// moves is the state machine: the states from which each move may be made, and
// where it leads. What is not here does not happen; the store's tests hold
// every pair of it against the database.
var moves = map[Move]map[State]State{
	MoveClaim:    {Pending: Processing, Processing: Processing, Completed: Completed},
	MoveAttempt:  {Processing: Processing},
	MoveRelease:  {Processing: Processing, Completed: Completed},
	MoveComplete: {Processing: Completed},
	MoveFinalize: {Completed: Completed},
	MoveReopen:   {Completed: Processing},
	MoveFail:     {Processing: Failed},
}

// States lists all states.
func States() []State { return []State{Pending, Processing, Completed, Failed} }

// Moves lists all moves.
func Moves() []Move {
	return []Move{MoveClaim, MoveAttempt, MoveRelease, MoveComplete, MoveFinalize, MoveReopen, MoveFail}
}

// Next is the state that a move leads to; ok is false when the state does not
// allow it.
func Next(s State, m Move) (next State, ok bool) {
	next, ok = moves[m][s]
	return next, ok
}
