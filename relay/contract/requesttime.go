package contract

import "time"

// Times of a request to the API. A proxy in front of the relays must not end a request earlier than
// the relay, because the client would lose the outcome that it waits for.
const (
	// CallTimeout bounds the database and RPC calls that one request makes. It does not include
	// the wait for the outcome of the request's submission.
	CallTimeout = 15 * time.Second
	// WaitMax is the longest wait for an outcome that a client may ask for, unless EnvWaitMax sets
	// another. The operator does not set EnvWaitMax.
	WaitMax = 60 * time.Second
	// TransferTime is the time that a slow client gets to send its request and to read the answer.
	TransferTime = 40 * time.Second
	// LongestRequest is the time after which the relay itself ends a request.
	LongestRequest = CallTimeout + WaitMax + TransferTime
)
