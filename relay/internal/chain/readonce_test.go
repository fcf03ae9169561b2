package chain

import (
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"
)

// observer is a process with two endpoints that reads the finalized slot for a fleet.
type observer struct {
	network
	*Endpoints
	*Finality
	polls int
}

func newObserver(t *testing.T, f *fleet) *observer {
	t.Helper()
	o := &observer{network: newNetwork("a", "b")}
	o.Endpoints, _ = newEndpoints(t, o.network, endpointsNamed("a", "b"), func(e *EndpointsOptions) { e.ReadOnce, e.Probe = f.readOnce, time.Nanosecond })
	o.Finality = NewFinality(o.Endpoints, time.Now, slog.New(slog.DiscardHandler))
	return o
}

// reach makes the endpoints reach the slot, and the process know it.
func (o *observer) reach(t *testing.T, slot uint64) {
	t.Helper()
	tick()
	for _, ep := range o.Endpoints.all {
		o.network[ep.name].setSlot(slot)
		o.pollEndpoint(t.Context(), ep)
		o.polls++
	}
}

// reads returns the number of readings.
func (o *observer) reads() int {
	return (o.network["a"].count("getSlot") + o.network["b"].count("getSlot") - o.polls) / 2
}

func TestProcessesShareTheFinalizedSlot(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFleet()
		all := []*observer{newObserver(t, f), newObserver(t, f), newObserver(t, f)}
		for _, o := range all {
			o.reach(t, 100)
			o.reach(t, 100)
			if _, err := o.LatestBlockhash(t.Context()); err != nil { // the genesis hash is known
				t.Fatal(err)
			}
		}
		const seconds = 100
		for second := range uint64(seconds) {
			for i, o := range all {
				o.reach(t, 100+5*second)
				if second%5 == uint64(i) {
					o.Finality.readForFleet(t.Context())
				}
				if r := o.Finality.Report(); second > 5 && (r.Stalled || !r.Current(time.Now()) || r.Slot+50 < 100+5*second || time.Since(r.ReadAt) > 2*finalityInterval) {
					t.Fatalf("after %d seconds process %d has the report %+v, want at most the slot %d, read in the last 10 s", second, i, r, 100+5*second)
				}
			}
			time.Sleep(time.Second)
		}
		sum := 0
		for _, o := range all {
			sum += o.reads()
		}
		if sum < seconds/5 || sum > seconds/5+2 {
			t.Errorf("the processes read %d times in %d seconds, want once in five seconds together", sum, seconds)
		}
	})
}

func TestASharedFinalizedSlotIsChecked(t *testing.T) {
	for name, tt := range map[string]struct {
		value string
		age   time.Duration
		used  bool
	}{
		"as expected":                {value: "120", age: time.Second, used: true},
		"one that stands still":      {value: "100", age: time.Second},
		"a slot that nobody reached": {value: "1000", age: time.Second},
		"too old":                    {value: "120", age: 5 * time.Second},
		"before the last reading":    {value: "120", age: 4 * time.Second},
		"no number":                  {value: "x", age: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newFleet()
				o := newObserver(t, f)
				o.reach(t, 100)
				o.reach(t, 100)
				if _, err := o.LatestBlockhash(t.Context()); err != nil {
					t.Fatal(err)
				}
				o.Finality.readForFleet(t.Context())
				time.Sleep(3 * time.Second)
				o.reach(t, 125)
				for shared := range f.shared {
					f.shared[shared] = sharedValue{[]byte(tt.value), time.Now().Add(-tt.age)}
				}
				before := o.reads()
				o.Finality.readForFleet(t.Context())
				want := uint64(125)
				if tt.used {
					want, _ = strconv.ParseUint(tt.value, 10, 64)
				}
				if r := o.Finality.Report(); r.Slot != want || (o.reads() == before) != tt.used {
					t.Errorf("the finalized slot is %d after %d reads, want %d, from the other process: %t", r.Slot, o.reads()-before, want, tt.used)
				}
			})
		})
	}
}

func TestProcessesSharePriorityFees(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFleet()
		one, two := newObserver(t, f), newObserver(t, f)
		fees := func(o *observer, accounts ...solana.PublicKey) []uint64 {
			t.Helper()
			got, err := o.PriorityFees(t.Context(), accounts)
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		for _, o := range []*observer{one, two} {
			o.reach(t, 100)
			if _, err := o.LatestBlockhash(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		one.set("7")
		two.set("9")
		account, other := solana.PublicKey{1}, solana.PublicKey{2}
		for i, step := range []struct {
			o       *observer
			account solana.PublicKey
			want    uint64
		}{{one, account, 7}, {two, account, 7}, {two, other, 9}, {one, other, 9}} {
			if diff := cmp.Diff([]uint64{step.want}, fees(step.o, step.account)); diff != "" {
				t.Errorf("step %d: the fees differ (-want +got):\n%s", i, diff)
			}
		}
		time.Sleep(sharedFeesMaxAge)
		if diff := cmp.Diff([]uint64{9}, fees(two, account)); diff != "" {
			t.Errorf("fees that are too old are used (-want +got):\n%s", diff)
		}
		for _, host := range two.network {
			host.set("getRecentPrioritizationFees", serverError)
		}
		time.Sleep(sharedFeesMaxAge)
		if got, err := two.PriorityFees(t.Context(), []solana.PublicKey{account}); err == nil {
			t.Errorf("without an answer the fees are %d, want an error", got)
		}
		if diff := cmp.Diff([]uint64{7}, fees(one, account)); diff != "" {
			t.Errorf("after a read that failed (-want +got):\n%s", diff)
		}
	})
}

// set makes the endpoints report a priority fee.
func (o *observer) set(fee string) {
	for _, host := range o.network {
		host.set("getRecentPrioritizationFees", resultReply(`[{"slot":100,"prioritizationFee":`+fee+`}]`))
	}
}
