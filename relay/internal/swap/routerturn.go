package swap

import "github.com/relaypool/relaypool/relay/internal/txmgr"

// Each try of a swap begins with the next router. The turn follows from the second leg's row, not
// from a process's memory, because any process may make the next try.

// routerTurn returns QuoteRequest.First of the try that comes after so many others.
func (s *Planner) routerTurn(tries int) int { return tries % s.router.Len() }

// countTries counts the tries of a second leg so far. Each claim and each dead attempt is a try,
// whichever process made it. The epoch of the first claim is 1.
func countTries(j *txmgr.Job) int { return max(0, int(j.Epoch)-1) + len(j.Dead) }
