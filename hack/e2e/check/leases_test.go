package check

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

// id makes ids that differ by their number.
func id(n byte) uuid.UUID { return uuid.UUID{15: n} }

var (
	victim, other, third, newcomer = id(1), id(2), id(3), id(4)
	held                           = Held{id(11): 1, id(12): 5}
)

func TestLeasesOfAKilledProcessAreThoseLastSeen(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		seen []Snapshot
		want Held
		// wantErr is a part; empty for none.
		wantErr string
	}{
		"killed": {
			seen: []Snapshot{{victim: {id(10): 1}, other: {}}, {victim: held, other: {}}, {other: {}, newcomer: {}}},
			want: held,
		},
		"killed with nothing":             {seen: []Snapshot{{victim: {id(10): 1}, other: {}}, {victim: {}, other: {}}, {other: {}}}, want: Held{}},
		"not forgotten yet":               {seen: []Snapshot{{victim: held, other: {}}, {victim: held, other: {}}}, wantErr: "0 of 2"},
		"two of them, as after an outage": {seen: []Snapshot{{victim: held, other: {}}, {}}, wantErr: "2 of 2"},
		"not seen":                        {wantErr: "not seen yet"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			process, got, err := DeadProcess(tc.seen)
			wantError(t, err, tc.wantErr)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("held (-want +got):\n%s", diff)
			}
			if err == nil && process != victim {
				t.Errorf("process %s, want %s", process, victim)
			}
		})
	}
}

func TestTheWorkOfAKilledProcessIsTakenUpByLivingOnes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		row  Row
		want bool
	}{
		"taken from the dead and taken up":                 {Row{Owner: other, Epoch: 7}, true},
		"taken up and put off again":                       {Row{Epoch: 7}, true},
		"finished by whoever took it up":                   {Row{Epoch: 7, Finished: true}, true},
		"finished by the process before it died":           {Row{Epoch: 5, Finished: true}, true},
		"put off by the process before it died, taken up":  {Row{Owner: other, Epoch: 6}, true},
		"still the dead one's":                             {Row{Owner: victim, Epoch: 5}, false},
		"taken from the dead, and left lying":              {Row{Epoch: 6}, false},
		"put off by the process before it died, and lying": {Row{Epoch: 5}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := map[uuid.UUID]Row{id(11): {Owner: third, Epoch: 3}, id(12): tc.row}
			if err := TakenOver(victim, held, now); (err == nil) != tc.want {
				t.Errorf("error %v, want one: %t", err, !tc.want)
			}
		})
	}
	if TakenOver(victim, held, nil) == nil {
		t.Error("rows that are not there are content")
	}
}
