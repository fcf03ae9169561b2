package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/swap"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
)

// maxDueAge is how long a due submission may wait for a process. If it waits longer, the root
// history of a busy pool may drop the root that its proof uses.
const maxDueAge = time.Minute

func (a *App) checkQueue(context.Context) error {
	b, ok := a.backlog.get() //nolint:contextcheck // many callers share the reading, which has its own timeout
	if !ok {
		return errors.New("the queue cannot be read")
	}
	return queueProblem(b, a.submissions.Manager.PausedBy())
}

// queueProblem reports held submissions, and due ones that no process has claimed.
func queueProblem(b submission.Backlog, pausedBy string) error {
	var parts []string
	if pausedBy != "" {
		parts = append(parts, "this relay claims no work: "+pausedBy)
	}
	var reasons []string
	for _, reason := range slices.Sorted(maps.Keys(b.Held)) {
		// A swap that waits, such as for a price, is not a fault, unless history is missing.
		// checkSwaps reports swaps past their timeout.
		if n := b.Held[reason]; n > 0 && (reason == txmgr.HoldHistory || !slices.Contains(swap.Reasons(), reason)) {
			reasons = append(reasons, fmt.Sprintf("%d for %s", n, reason))
		}
	}
	if len(reasons) > 0 {
		parts = append(parts, "submissions are held: "+strings.Join(reasons, ", "))
	}
	if b.Held[txmgr.HoldSecondEndpoint] > 0 {
		parts = append(parts, "submissions held for second_endpoint wait until a second RPC endpoint confirms the first, and new work continues: the check rpc names the endpoints that do not answer or that contradict others; add an endpoint, or remove the one that is dead or wrong from the configuration")
	}
	if b.OldestDue > maxDueAge {
		parts = append(parts, fmt.Sprintf("%d submissions are due and no relay claims them, the oldest for %s: run more relays", b.Due, b.OldestDue.Round(time.Second)))
	}
	return joinProblems(parts)
}
