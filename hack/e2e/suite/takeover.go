package suite

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	corev1 "k8s.io/api/core/v1"

	"github.com/relaypool/relaypool/hack/e2e/books"
	"github.com/relaypool/relaypool/hack/e2e/cluster"
	"github.com/relaypool/relaypool/hack/e2e/judge"
	"github.com/relaypool/relaypool/hack/e2e/report"
	"github.com/relaypool/relaypool/relay/contract"
)

const (
	// leastHeld submissions at work make it sure that a relay still holds some when
	// the pod that kills it has started. At the calm rate a fleet of three holds
	// about forty.
	leastHeld = 5
	// takenWithin is ten times what a takeover takes by design: the lease of 5 s that
	// a dead process keeps, and a second until the others look. One that is left to
	// anything slower, such as a row's own timeout, takes minutes.
	takenWithin = time.Minute
	// lookEvery is between two sightings: what a dead process held stays as it is for
	// three seconds at least.
	lookEvery = 250 * time.Millisecond
)

const (
	sightingSQL = `SELECT w.id, s.id, s.epoch FROM workers w LEFT JOIN submissions s ON s.lease_owner = w.id`
	// A row without a due time is finished.
	standingSQL = `SELECT id, lease_owner, epoch, due_at IS NULL FROM submissions WHERE id = ANY($1)`
)

// sightings are what processes held, from one moment to the next.
type sightings struct {
	mu   sync.Mutex
	seen []judge.Sighting
	err  error

	stop    context.CancelFunc
	looking sync.WaitGroup
}

// observe begins to look at the leases in the fleet's database, until stop.
func (s *suite) observe(ctx context.Context) *sightings {
	ctx, stop := context.WithCancel(ctx)
	o := &sightings{stop: stop}
	o.looking.Go(func() {
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for ctx.Err() == nil {
			// Again with another connection whenever one breaks.
			err := s.stage.WithDatabase(ctx, fleetName, func(conn *pgx.Conn) error { return o.look(ctx, conn, tick.C) })
			o.mu.Lock()
			o.err = err
			o.mu.Unlock()
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	})
	return o
}

func (o *sightings) look(ctx context.Context, conn *pgx.Conn, tick <-chan time.Time) error {
	for {
		rows, err := conn.Query(ctx, sightingSQL)
		if err != nil {
			return err
		}
		seen := make(judge.Sighting)
		var process uuid.UUID
		var submission *uuid.UUID // null for a process that holds nothing
		var epoch *int64
		if _, err := pgx.ForEachRow(rows, []any{&process, &submission, &epoch}, func() error {
			if seen[process] == nil {
				seen[process] = make(judge.Held)
			}
			if submission != nil {
				seen[process][*submission] = *epoch
			}
			return nil
		}); err != nil {
			return err
		}
		o.add(seen)
		select {
		case <-ctx.Done():
			return nil
		case <-tick:
		}
	}
}

func (o *sightings) add(seen judge.Sighting) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen, o.err = append(o.seen, seen), nil
}

// close ends the looks.
func (o *sightings) close() {
	o.stop()
	o.looking.Wait()
}

// all are the sightings so far, and what stands against the last look.
func (o *sightings) all() ([]judge.Sighting, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.seen[:len(o.seen):len(o.seen)], o.err
}

// restart forgets the sightings once the newest has as many processes as there
// are pods, so that whoever is missing later was killed since.
func (o *sightings) restart(ctx context.Context, pods int) error {
	return cluster.Await(ctx, "the database knows each relay's process, and no other", cluster.Minutes(1), func(context.Context) (string, error) {
		o.mu.Lock()
		defer o.mu.Unlock()
		if len(o.seen) == 0 {
			return "nothing was seen", o.err
		}
		if n := len(o.seen[len(o.seen)-1]); n != pods {
			return fmt.Sprintf("it knows %d of %d", n, pods), nil
		}
		o.seen = o.seen[len(o.seen)-1:]
		return "", nil
	})
}

// busiest waits until a pod has enough under way, and gives the one with most.
func (s *suite) busiest(ctx context.Context, pods []corev1.Pod) (victim *corev1.Pod, err error) {
	err = cluster.Await(ctx, fmt.Sprintf("a relay holds %d submissions", leastHeld), cluster.Minutes(2), func(ctx context.Context) (string, error) {
		most := 0
		for i := range pods {
			page, err := books.Page(ctx, s.stage.HTTP, operationsURL(&pods[i])+contract.MetricsPath)
			if err != nil {
				return "", err
			}
			n := sample(page, contract.MetricInFlight.Name) + sample(page, contract.MetricWatching.Name)
			if n > most {
				most, victim = n, &pods[i]
			}
		}
		if most < leastHeld {
			return fmt.Sprintf("the busiest holds %d", most), nil
		}
		return "", nil
	})
	return victim, err
}

// sample adds up the samples of a metric that counts things.
func sample(page []byte, name string) (sum int) {
	for line := range strings.Lines(string(page)) {
		rest, found := strings.CutPrefix(line, name)
		if !found || rest == "" || rest[0] != ' ' && rest[0] != '{' {
			continue // a comment, or a longer name
		}
		fields := strings.Fields(rest)
		if value, err := strconv.ParseFloat(fields[len(fields)-1], 64); err == nil {
			sum += int(value)
		}
	}
	return sum
}

// takenOver waits until all that the killed process held is in others' hands. The
// restarted relay is another process, and is back before the leases are over: who
// of them is the first to look is luck, and is told.
func (s *suite) takenOver(ctx context.Context, r *report.Scenario, o *sightings, pods int) error {
	var dead uuid.UUID
	var held judge.Held
	if err := cluster.Await(ctx, "the killed relay's leases are over", takenWithin, func(context.Context) (complaint string, err error) {
		seen, err := o.all()
		if err != nil {
			return "", err
		}
		dead, held, complaint = judge.Gone(seen)
		return complaint, nil
	}); err != nil {
		return err
	}
	if len(held) == 0 {
		return errors.New("the relay held nothing when it was killed: there was nothing to take over, and nothing is shown")
	}
	if err := cluster.Await(ctx, "what the killed relay held is taken over", takenWithin, func(ctx context.Context) (string, error) {
		now, err := s.standing(ctx, held)
		if err != nil {
			return "", err
		}
		o.add(judge.Owners(now)) // the looks beside this one may come too late for it
		return judge.InOtherHands(dead, held, now), nil
	}); err != nil {
		return err
	}
	seen, _ := o.all() // one look that failed takes nothing from those before
	heirs := judge.Heirs(seen, dead, held)
	r.Saw("%d submissions that it held are in others' hands; %d of the %d relays that went on took part", len(held), len(heirs), pods-1)
	return nil
}

func (s *suite) standing(ctx context.Context, held judge.Held) (map[uuid.UUID]judge.Row, error) {
	ids := make([]uuid.UUID, 0, len(held))
	for id := range held {
		ids = append(ids, id)
	}
	now := make(map[uuid.UUID]judge.Row)
	err := s.stage.WithDatabase(ctx, fleetName, func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, standingSQL, ids)
		if err != nil {
			return err
		}
		var id uuid.UUID
		var owner *uuid.UUID
		var row judge.Row
		_, err = pgx.ForEachRow(rows, []any{&id, &owner, &row.Epoch, &row.Finished}, func() error {
			row.Owner = uuid.Nil
			if owner != nil {
				row.Owner = *owner
			}
			now[id] = row
			return nil
		})
		return err
	})
	return now, err
}
