package arena

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/relaypool/relaypool/hack/drill/schedule"
	"github.com/relaypool/relaypool/hack/drill/timeline"
	"github.com/relaypool/relaypool/hack/load"
)

// director executes the schedule and records when each event really began and ended.
type director struct {
	arena *arena
	// active describes the events under way, by their number.
	mu     sync.Mutex
	active map[int]string
	// endLasting are the functions that end the lies which go on after the load.
	endLasting []func() error
	bands      []timeline.Band
	errs       []error
}

// run executes the events and returns when all are undone; after ctx has ended it starts no
// more. An error means that the drill itself failed.
func (d *director) run(ctx context.Context, events []schedule.Event) error {
	began := time.Now()
	var running sync.WaitGroup
	for i, e := range events {
		load.Sleep(ctx, time.Until(began.Add(e.At)))
		if ctx.Err() != nil {
			break
		}
		running.Go(func() {
			if err := d.runEvent(ctx, i, e); err != nil {
				d.mu.Lock()
				d.errs = append(d.errs, fmt.Errorf("event %s: %w", e, err))
				d.mu.Unlock()
			}
		})
	}
	running.Wait()
	return errors.Join(d.errs...)
}

func (d *director) activeEvents() (active []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, text := range d.active {
		active = append(active, text)
	}
	return active
}

// runEvent starts an event, waits for its duration and undoes it, even after ctx has ended.
func (d *director) runEvent(ctx context.Context, number int, e schedule.Event) error {
	lane, label := laneAndLabel(e)
	began := time.Now()
	d.mu.Lock()
	d.active[number] = lane + " " + label
	d.mu.Unlock()
	recordEnd := func() {
		delete(d.active, number)
		d.bands = append(d.bands, timeline.Band{
			Lane: lane, Label: label, From: began.Sub(d.arena.began), To: time.Since(d.arena.began),
		})
	}
	err := d.do(ctx, e)
	d.mu.Lock()
	defer d.mu.Unlock()
	if e.Lasts {
		d.endLasting = append(d.endLasting, func() error { recordEnd(); return d.arena.network.lie(e.Target, "") })
		return err
	}
	recordEnd()
	return err
}

// endLastingLies undoes the events that outlasted the load.
func (d *director) endLastingLies() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	for _, undo := range d.endLasting {
		errs = append(errs, undo())
	}
	d.endLasting = nil
	return errors.Join(errs...)
}

// liePrefix distinguishes lies from faults in progress lines and in the picture.
const liePrefix = "lies: "

// laneLabels maps each kind of event to its lane and its label in the picture.
var laneLabels = map[schedule.Kind][2]string{
	schedule.KillRelay: {"relay {n}", "SIGKILL"}, schedule.StopRelay: {"relay {n}", "SIGTERM"},
	schedule.StopPostgres: {"Postgres", "stop"}, schedule.CrashPostgres: {"Postgres", "crash"}, schedule.CutConnections: {"Postgres", "cut"},
	schedule.Fault: {"endpoint {n}", "{fault}"}, schedule.Lie: {"endpoint {n}", liePrefix + "{fault}"},
	schedule.Fork: {"chain", "fork −{amount}, {fault}"}, schedule.SkipSlots: {"chain", "skip {amount}"},
	schedule.Fund: {"payers", "funded"}, schedule.Burst: {"load", "×{amount}"},
	schedule.MovePrice: {"market", "{amount} %"}, schedule.RouterFault: {"router", "{fault}"}, schedule.SignerFault: {"key service", "{fault}"},
	schedule.Meddle: {"strangers", "{fault}"}, schedule.Attack: {"hostile clients", "{fault}"},
	schedule.ChangeRent: {"chain", "rent {amount}"}, schedule.ChangeSlotTime: {"chain", "slots {amount} %"}, schedule.Migrate: {"chain", "migration"},
}

func laneAndLabel(e schedule.Event) (lane, label string) {
	fill := strings.NewReplacer("{n}", strconv.Itoa(e.Target+1), "{amount}", strconv.Itoa(e.Amount), "{fault}", e.Fault)
	return fill.Replace(laneLabels[e.Kind][0]), fill.Replace(laneLabels[e.Kind][1])
}

func (d *director) do(ctx context.Context, e schedule.Event) error {
	a := d.arena
	switch e.Kind {
	case schedule.KillRelay, schedule.StopRelay:
		return d.takeRelayDown(ctx, e)
	case schedule.StopPostgres, schedule.CrashPostgres:
		return d.takeDatabaseDown(ctx, e)
	case schedule.CutConnections:
		cut, err := a.database.cutConnections(ctx)
		a.connectionsCut.Add(int64(cut))
		return err
	case schedule.Fault, schedule.RouterFault, schedule.SignerFault:
		on := a.setFault(e, true)
		load.Sleep(ctx, e.For)
		return errors.Join(on, a.setFault(e, false))
	case schedule.ChangeRent, schedule.ChangeSlotTime, schedule.Migrate:
		return a.changeChain(ctx, e)
	case schedule.Fork:
		undone, err := a.network.fork(e.Amount, e.Fault)
		a.mu.Lock()
		defer a.mu.Unlock()
		for _, tx := range undone {
			a.undone[tx.Signature] = true
		}
		return err
	case schedule.SkipSlots:
		a.box.Chain.Skip(uint64(e.Amount)) //nolint:gosec // a few slots
	case schedule.Fund:
		return a.fund(ctx)
	case schedule.MovePrice:
		moved := a.network.setPrice(e.Amount)
		load.Sleep(ctx, e.For)
		return errors.Join(moved, a.network.setPrice(100))
	case schedule.Meddle:
		ctx, cancel := context.WithTimeout(ctx, e.For)
		defer cancel()
		a.meddle(ctx, e.Fault)
	case schedule.Lie:
		return a.lie(ctx, e)
	case schedule.Attack:
		ctx, cancel := context.WithTimeout(ctx, e.For)
		defer cancel()
		a.attack(ctx, e.Fault)
	case schedule.Burst:
		a.load.SetRate(a.o.Rate * float64(e.Amount))
		load.Sleep(ctx, e.For)
		a.load.SetRate(a.o.Rate)
	}
	return nil
}

// setFault turns a fault of an endpoint, of the router or of the key service on or off.
func (a *arena) setFault(e schedule.Event, on bool) error {
	switch {
	case e.Kind == schedule.Fault:
		return a.network.set(e.Target, e.Fault, on)
	case e.Kind == schedule.RouterFault:
		return a.network.setRouter(e.Fault, on)
	case on:
		a.keyService.Fault.Store(e.Fault)
	default:
		a.keyService.Fault.Store("")
	}
	return nil
}

// lie makes an endpoint lie for the event's duration, or until endLastingLies ends the lie.
func (a *arena) lie(ctx context.Context, e schedule.Event) error {
	err := a.network.lie(e.Target, e.Fault)
	if e.Lasts {
		return err
	}
	load.Sleep(ctx, e.For)
	return errors.Join(err, a.network.lie(e.Target, ""))
}

func (d *director) takeRelayDown(ctx context.Context, e schedule.Event) error {
	r := d.arena.relays[e.Target]
	until := time.Now().Add(e.For)
	var err error
	if e.Kind == schedule.KillRelay {
		err = r.kill()
	} else {
		r.stop()
	}
	load.Sleep(ctx, time.Until(until))
	r.setWanted(true)
	// The band ends when the relay serves again, which an unavailable database may delay.
	readyCtx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_ = r.awaitReady(readyCtx)
	return err
}

func (d *director) takeDatabaseDown(ctx context.Context, e schedule.Event) error {
	db := d.arena.database
	stop := db.stop
	if e.Kind == schedule.CrashPostgres {
		stop = db.crash
	}
	until := time.Now().Add(e.For)
	err := stop(context.WithoutCancel(ctx))
	load.Sleep(ctx, time.Until(until))
	return errors.Join(err, db.start(context.WithoutCancel(ctx)))
}
