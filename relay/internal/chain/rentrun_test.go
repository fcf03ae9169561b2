package chain

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
)

func TestUnreadRentIsWarnedAboutOnceAndReadLessAndLessOften(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sysvar := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, 5080), math.Float64bits(1))
		var log lockedBuffer
		var reads atomic.Int32
		var answers atomic.Bool
		r := &RentRate{log: slog.New(slog.NewTextHandler(&log, nil)), account: func(context.Context, solana.PublicKey) (*onchain.Account, error) {
			if reads.Add(1); !answers.Load() {
				return nil, errors.New("away")
			}
			return &onchain.Account{Data: append(sysvar, 50)}, nil
		}}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go r.Run(ctx)
		check := func(after time.Duration, wantReads int32, wantWarnings int) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			if warnings := strings.Count(log.String(), "level=WARN"); reads.Load() != wantReads || warnings != wantWarnings {
				t.Errorf("%d reads and %d warnings, want %d and %d", reads.Load(), warnings, wantReads, wantWarnings)
			}
		}
		check(time.Second, 1, 1)    // read at once
		check(2*time.Second, 2, 1)  // after 2 s
		check(4*time.Second, 3, 1)  // after 4 s more
		check(60*time.Second, 6, 1) // after 8, 16 and 32 s more
		answers.Store(true)
		check(time.Minute, 7, 1)
		if r.Rate() != 5080 {
			t.Errorf("the rate is %d, want 5080", r.Rate())
		}
		answers.Store(false)
		check(3*time.Minute, 10, 2)
	})
}
