package e2e

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

// numberedID makes ids that differ by their number.
func numberedID(n byte) uuid.UUID { return uuid.UUID{15: n} }

var (
	victimProcess, otherProcess, thirdProcess, newProcess = numberedID(1), numberedID(2), numberedID(3), numberedID(4)
	heldByVictim                                          = heldSubmissions{numberedID(11): 1, numberedID(12): 5}
)

func TestFindDeadProcessAndItsLastLeases(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		snapshots []leaseSnapshot
		want      heldSubmissions
		// wantErr is a part of the error; empty for no error.
		wantErr string
	}{
		"killed": {
			snapshots: []leaseSnapshot{{victimProcess: {numberedID(10): 1}, otherProcess: {}}, {victimProcess: heldByVictim, otherProcess: {}}, {otherProcess: {}, newProcess: {}}},
			want:      heldByVictim,
		},
		"killed while it held nothing":     {snapshots: []leaseSnapshot{{victimProcess: {numberedID(10): 1}, otherProcess: {}}, {victimProcess: {}, otherProcess: {}}, {otherProcess: {}}}, want: heldSubmissions{}},
		"still in the last snapshot":       {snapshots: []leaseSnapshot{{victimProcess: heldByVictim, otherProcess: {}}, {victimProcess: heldByVictim, otherProcess: {}}}, wantErr: "0 of 2"},
		"two are gone, as after an outage": {snapshots: []leaseSnapshot{{victimProcess: heldByVictim, otherProcess: {}}, {}}, wantErr: "2 of 2"},
		"no snapshot":                      {wantErr: "no snapshot was taken yet"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			process, got, err := findDeadProcess(tc.snapshots)
			wantError(t, err, tc.wantErr)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("held (-want +got):\n%s", diff)
			}
			if err == nil && process != victimProcess {
				t.Errorf("got process %s, want %s", process, victimProcess)
			}
		})
	}
}

func TestTakenOverRequiresClaimsByOthers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		row  submissionRow
		want bool
	}{
		"released, and claimed by another process":              {submissionRow{Owner: otherProcess, Epoch: 7}, true},
		"claimed by another process and deferred":               {submissionRow{Epoch: 7}, true},
		"finished by its new owner":                             {submissionRow{Epoch: 7, Finished: true}, true},
		"finished before the death":                             {submissionRow{Epoch: 5, Finished: true}, true},
		"deferred before the death, claimed by another process": {submissionRow{Owner: otherProcess, Epoch: 6}, true},
		"still leased by the dead process":                      {submissionRow{Owner: victimProcess, Epoch: 5}, false},
		"released, not claimed":                                 {submissionRow{Epoch: 6}, false},
		"deferred before the death, not claimed":                {submissionRow{Epoch: 5}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rows := map[uuid.UUID]submissionRow{numberedID(11): {Owner: thirdProcess, Epoch: 3}, numberedID(12): tc.row}
			if err := takenOver(victimProcess, heldByVictim, rows); (err == nil) != tc.want {
				t.Errorf("got error %v; an error is expected: %t", err, !tc.want)
			}
		})
	}
	if takenOver(victimProcess, heldByVictim, nil) == nil {
		t.Error("got no error for missing rows, want one")
	}
}
