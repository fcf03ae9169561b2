package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/relaypool/relaypool/hack/throughput/gauge"
)

const (
	// makers is how many RelayPools are created at once.
	makers = 8
	// workPatience is for all of them to come to what they declare.
	workPatience = 15 * time.Minute
	// scrape is how often the operator is asked for its metrics at rest, as by a
	// Prometheus.
	scrape = 15 * time.Second
	// told is how often a person is told how far it is.
	told = 10 * time.Second
)

// result is what one number of RelayPools gave.
type result struct {
	pools int
	// fleets and ready are from the first creation until the last fleet was
	// available, and the last RelayPool ready; each are what a RelayPool took from
	// its own creation until it was ready, sorted.
	fleets, ready time.Duration
	each          []time.Duration
	// creation is what was asked, for each RelayPool: reads until all were ready,
	// writes until there were no more. Kinds says which calls they were.
	creation calls
	kinds    []share
	// busy is the operator's processor time meanwhile, for each RelayPool, and around
	// that of API server, etcd, chain and stand-ins.
	busy, around time.Duration
	// hourly is for each RelayPool and hour while nothing changed, rpc what was
	// asked of the chain; restKinds says which.
	hourly    calls
	restKinds []share
	rpc       float64
	// restart is what a new process asked, for each RelayPool, and how long it took
	// to look at all of them. relapsed is how many were not ready any more then.
	restart     calls
	restartTook time.Duration
	relapsed    int
	// resident and heap are bytes, the least in the window; cores is processor time
	// at rest, of one core; others is the share of the machine that other programs
	// took in all the time.
	resident, heap, cores, others float64
}

// trial is one measurement under way.
type trial struct {
	*lab
	*result
	world    *world
	operator *operator
	// before is what the operator and the API server had counted at the beginning.
	before, served gauge.Metrics
	machine        machine
}

// measure brings n RelayPools up, waits, and starts the operator again.
func measure(ctx context.Context, s *settings, n int) (r *result, err error) {
	machine, err := processor()
	if err != nil {
		return nil, err
	}
	progress(n, "starting an API server and a chain")
	m := &trial{result: &result{pools: n}}
	if m.lab, err = open(ctx, s); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if m.world, err = m.watch(ctx); err != nil {
		return nil, err
	}
	if m.operator, err = m.start(ctx, fmt.Sprintf("operator-%d", n)); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.operator.Stop(stopGrace)) }()
	for _, part := range []func(context.Context) error{m.create, m.settle, m.rest, m.again} {
		if err := part(ctx); err != nil {
			return nil, err
		}
	}
	now, err := processor()
	m.others = now.Since(machine).others()
	return m.result, err
}

// create makes the RelayPools and waits until all are ready.
func (r *trial) create(ctx context.Context) (err error) {
	if r.before, err = r.operator.read(ctx); err != nil {
		return err
	}
	if r.served, err = r.lab.served(ctx); err != nil {
		return err
	}
	if r.machine, err = processor(); err != nil {
		return err
	}
	began := time.Now()
	made, err := r.make(ctx)
	if err != nil {
		return err
	}
	progress(r.pools, "made in %s", rounded(time.Since(began)))
	said := time.Now()
	if err := await(ctx, workPatience, func() (bool, error) {
		ready, err := r.world.readyNow()
		if time.Since(said) > told {
			said = time.Now()
			progress(r.pools, "%d are ready", ready)
		}
		return ready == r.pools, errors.Join(err, r.operator.Ended())
	}); err != nil {
		return err
	}
	after, err := r.operator.read(ctx)
	if err != nil {
		return err
	}
	r.creation.reads = asked(after.Since(r.before)).per(float64(r.pools)).reads
	fleet, ready := r.world.came()
	for name, at := range ready {
		r.each = append(r.each, at.Sub(made[name]))
		r.ready = max(r.ready, at.Sub(began))
		r.fleets = max(r.fleets, fleet[name].Sub(began))
	}
	slices.Sort(r.each)
	progress(r.pools, "all have their fleets after %s, and are ready after %s", rounded(r.fleets), rounded(r.ready))
	return nil
}

// make makes n RelayPools and tells when each.
func (r *trial) make(ctx context.Context) (made map[string]time.Time, err error) {
	made = map[string]time.Time{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	next := make(chan int)
	for range makers {
		wg.Go(func() {
			for i := range next {
				pool := r.relayPool(i)
				at := time.Now()
				failed := r.client.Create(ctx, pool)
				mu.Lock()
				made[pool.Name], err = at, errors.Join(err, failed)
				mu.Unlock()
			}
		})
	}
	for i := range r.pools {
		next <- i
	}
	close(next)
	wg.Wait()
	return made, err
}

// settle waits until the operator writes nothing any more, and tells what it took
// until then.
func (r *trial) settle(ctx context.Context) error {
	last, err := r.quiet(ctx)
	if err != nil {
		return err
	}
	n, since := float64(r.pools), last.Since(r.before)
	r.creation.writes = asked(since).per(n).writes
	r.busy = time.Duration(since.Sum("process_cpu_seconds_total") / n * float64(time.Second))
	now, err := processor()
	if err != nil {
		return err
	}
	r.around = time.Duration(float64(now.Since(r.machine).ours)/n) - r.busy
	served, err := r.lab.served(ctx)
	r.kinds = byKind(served.Since(r.served), n)
	r.served = served
	return err
}

// quiet waits until the operator writes nothing any more, and gives what it had
// counted when it began not to.
func (r *trial) quiet(ctx context.Context) (last gauge.Metrics, err error) {
	writes, since := -1.0, time.Now()
	err = await(ctx, workPatience, func() (bool, error) {
		m, err := r.operator.read(ctx)
		if err != nil {
			return false, errors.Join(err, r.operator.Ended())
		}
		if now := asked(m).writes; now != writes {
			writes, since, last = now, time.Now(), m
		}
		_, err = r.world.readyNow()
		return time.Since(since) > r.settings.calm, err
	})
	return last, err
}

// rest counts what the operator asks while nothing changes.
func (r *trial) rest(ctx context.Context) error {
	progress(r.pools, "nothing is written any more; counting for %s", r.settings.window)
	before, err := r.operator.read(ctx)
	if err != nil {
		return err
	}
	rpc, began := sum(r.chain.Stats()), time.Now()
	after := before
	for end := began.Add(r.settings.window); time.Now().Before(end); {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(scrape, time.Until(end))):
		}
		if after, err = r.operator.read(ctx); err != nil {
			return errors.Join(err, r.operator.Ended())
		}
		r.resident = least(r.resident, after.Sum("process_resident_memory_bytes"))
		r.heap = least(r.heap, after.Sum("go_memstats_heap_inuse_bytes"))
	}
	window := time.Since(began)
	each := float64(r.pools) * window.Hours()
	r.hourly = asked(after.Since(before)).per(each)
	r.rpc = float64(sum(r.chain.Stats())-rpc) / each
	r.cores = after.Since(before).Sum("process_cpu_seconds_total") / window.Seconds()
	served, err := r.lab.served(ctx)
	r.restKinds = byKind(served.Since(r.served), each)
	return err
}

func least(a, b float64) float64 {
	if a == 0 {
		return b
	}
	return min(a, b)
}

// again starts the operator anew, with everything there already.
func (r *trial) again(ctx context.Context) (err error) {
	if err := r.operator.Stop(stopGrace); err != nil {
		return err
	}
	r.world.forgive()
	began := time.Now()
	if r.operator, err = r.start(ctx, fmt.Sprintf("operator-%d-again", r.pools)); err != nil {
		return err
	}
	if err := await(ctx, workPatience, func() (bool, error) {
		m, err := r.operator.read(ctx)
		if err != nil {
			return false, errors.Join(err, r.operator.Ended())
		}
		return m.Sum("controller_runtime_reconcile_total") >= float64(r.pools) && m.Sum("workqueue_depth") == 0 && m.Sum("controller_runtime_active_workers") == 0, nil
	}); err != nil {
		return err
	}
	r.restartTook = time.Since(began)
	looked, err := r.operator.read(ctx)
	if err != nil {
		return err
	}
	last, err := r.quiet(ctx)
	if err != nil {
		return err
	}
	n := float64(r.pools)
	r.restart = calls{asked(looked).per(n).reads, asked(last).per(n).writes}
	r.relapsed = r.world.relapsed()
	progress(r.pools, "a new operator has looked at all of them after %s", rounded(r.restartTook))
	return nil
}

// machine is processor time: ours with that of the children, and the machine's.
type machine struct{ ours, busy, total time.Duration }

func processor() (machine, error) {
	p, err := gauge.ReadProcessor(nil, os.Getpid(), os.Getpid())
	return machine{p.Database, p.Busy, p.Total}, err
}

func (m machine) Since(before machine) machine {
	return machine{m.ours - before.ours, m.busy - before.busy, m.total - before.total}
}

func (m machine) others() float64 {
	if m.total <= 0 {
		return 0
	}
	return max(0, float64(m.busy-m.ours)/float64(m.total))
}
