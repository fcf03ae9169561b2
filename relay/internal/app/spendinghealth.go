package app

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/relaypool/relaypool/relay/internal/spendcap"
)

func (a *App) checkSpending(ctx context.Context) error {
	usage, err := a.caps.Usage(ctx)
	if err != nil {
		return errors.New("the fleet's spending cannot be read, so the relay pays for nothing")
	}
	return spendingProblem(usage)
}

// spendingProblem names every cap that is reached, and the flag that raises it.
func spendingProblem(usage []spendcap.Usage) error {
	var reached []string
	for _, u := range usage {
		if u.Limit > 0 && (u.Reached || u.Spent >= u.Limit) {
			reached = append(reached, fmt.Sprintf("the spend cap %s is reached: %d of %d lamports; work waits until enough of that spending leaves the window, or until --spend-cap-%s is raised",
				u.Cap, u.Spent, u.Limit, capFlagSuffix(u.Cap)))
		}
	}
	return joinProblems(reached)
}

// capFlagSuffix is the end of a cap's flag: transfers_day is --spend-cap-transfers-day.
func capFlagSuffix(name string) string { return strings.ReplaceAll(name, "_", "-") }
