package submission

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// TestFailingNoteIsRefusedForAWhile: a failed note is refused for a while in every new submission.
// Otherwise a submission that fails finally could be posted again at once, for a fee each time.
func TestFailingNoteIsRefusedForAWhile(t *testing.T) {
	t.Parallel()
	var f failedNotes
	now := time.Unix(1000, 0)
	notes := &shieldpool.PublicInputs{Nullifiers: [2][32]byte{{31: 1}}}
	other := &shieldpool.PublicInputs{Nullifiers: [2][32]byte{{31: 2}}}
	for failed, want := range []time.Duration{0, 0, 30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 8 * time.Minute} {
		if failed > 0 {
			f.add(notes, 1, now)
		}
		if want > 0 {
			why, refused := refusal.As(f.check(notes, now.Add(want-time.Second)))
			if !refused || why.Code != refusal.RateLimited || why.RetryAfter != time.Second {
				t.Errorf("after %d failures, one second before the end of the delay, the refusal is %+v; want %s with RetryAfter 1s", failed, why, refusal.RateLimited)
			}
		}
		now = now.Add(want)
		if err := f.check(notes, now); err != nil {
			t.Errorf("after %d failures and the delay of %s the note is refused: %v", failed, want, err)
		}
		if err := f.check(other, now); err != nil {
			t.Errorf("another note is refused: %v", err)
		}
	}
	f.add(notes, 0, now)
	if err := f.check(notes, now); err != nil {
		t.Errorf("the note is refused after a failure that cost nothing: %v", err)
	}
	now = now.Add(maxRetryDelay + time.Second)
	f.add(notes, 1, now)
	if err := f.check(notes, now); err != nil {
		t.Errorf("the note is refused because of failures long ago: %v", err)
	}
	for i := range uint32(2 * maxFailedNotes) {
		f.add(&shieldpool.PublicInputs{Nullifiers: [2][32]byte{[32]byte(append(make([]byte, 28), binary.BigEndian.AppendUint32(nil, i+10)...))}}, 1, now)
	}
	if len(f.notes) > maxFailedNotes {
		t.Errorf("%d notes are recorded, want at most %d", len(f.notes), maxFailedNotes)
	}
}
