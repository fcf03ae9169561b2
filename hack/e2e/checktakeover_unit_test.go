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

func TestFindDeadProcessAndItsLastLeases(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		snapshots []Snapshot
		want      Held
		// wantErr is a part of the error; empty for no error.
		wantErr string
	}{
		"killed": {
			snapshots: []Snapshot{{victim: {id(10): 1}, other: {}}, {victim: held, other: {}}, {other: {}, newcomer: {}}},
			want:      held,
		},
		"killed while it held nothing":     {snapshots: []Snapshot{{victim: {id(10): 1}, other: {}}, {victim: {}, other: {}}, {other: {}}}, want: Held{}},
		"still in the last snapshot":       {snapshots: []Snapshot{{victim: held, other: {}}, {victim: held, other: {}}}, wantErr: "0 of 2"},
		"two are gone, as after an outage": {snapshots: []Snapshot{{victim: held, other: {}}, {}}, wantErr: "2 of 2"},
		"no snapshot":                      {wantErr: "no snapshot was taken yet"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			process, got, err := FindDeadProcess(tc.snapshots)
			wantError(t, err, tc.wantErr)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("held (-want +got):\n%s", diff)
			}
			if err == nil && process != victim {
				t.Errorf("got process %s, want %s", process, victim)
			}
		})
	}
}

func TestTakenOverRequiresClaimsByOthers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		row  Row
		want bool
	}{
		"released, and claimed by another process":              {Row{Owner: other, Epoch: 7}, true},
		"claimed by another process and deferred":               {Row{Epoch: 7}, true},
		"finished by its new owner":                             {Row{Epoch: 7, Finished: true}, true},
		"finished before the death":                             {Row{Epoch: 5, Finished: true}, true},
		"deferred before the death, claimed by another process": {Row{Owner: other, Epoch: 6}, true},
		"still leased by the dead process":                      {Row{Owner: victim, Epoch: 5}, false},
		"released, not claimed":                                 {Row{Epoch: 6}, false},
		"deferred before the death, not claimed":                {Row{Epoch: 5}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rows := map[uuid.UUID]Row{id(11): {Owner: third, Epoch: 3}, id(12): tc.row}
			if err := TakenOver(victim, held, rows); (err == nil) != tc.want {
				t.Errorf("got error %v; an error is expected: %t", err, !tc.want)
			}
		})
	}
	if TakenOver(victim, held, nil) == nil {
		t.Error("got no error for missing rows, want one")
	}
}
