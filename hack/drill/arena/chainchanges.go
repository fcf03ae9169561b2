package arena

import (
	"context"
	"errors"
	"time"

	"github.com/relaypool/relaypool/hack/drill/schedule"
	"github.com/relaypool/relaypool/hack/load"
	"github.com/relaypool/relaypool/hack/localnet/bank"
)

// changeChain changes rent or slot time for the event's time, or moves the chain to
// Alpenglow, which it does not come back from.
func (a *arena) changeChain(ctx context.Context, e schedule.Event) error {
	chain := a.box.Chain
	var changed, restored error
	switch e.Kind {
	case schedule.ChangeRent:
		chain.SetRent(bank.Rent(e.Amount)) //nolint:gosec // above zero
	case schedule.ChangeSlotTime:
		changed = chain.SetSlotDuration(percentOf(a.o.Slot, e.Amount))
	default:
		changed = chain.StartMigration(a.migrationSlots([]schedule.Event{e}))
	}
	load.Sleep(ctx, e.For)
	switch e.Kind {
	case schedule.ChangeRent:
		chain.SetRent(bank.DefaultRent)
	case schedule.ChangeSlotTime:
		restored = chain.SetSlotDuration(a.o.Slot)
	}
	return errors.Join(changed, restored)
}

// migrationSlots returns the slots that the migration's pause takes.
func (a *arena) migrationSlots(events []schedule.Event) (slots uint64) {
	for _, e := range events {
		if e.Kind == schedule.Migrate {
			slots += uint64(e.For / a.o.Slot) //nolint:gosec // both above zero
		}
	}
	return slots
}

func percentOf(d time.Duration, percent int) time.Duration {
	return d * time.Duration(percent) / 100
}
