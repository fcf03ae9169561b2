package store

import (
	"context"
	"sync"
	"testing"

	"github.com/relaypool/relaypool/relay/internal/viewingkey"
)

func TestOneOfConcurrentRegistrationsInsertsTheViewingKey(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	record := func(n byte) viewingkey.Record {
		return viewingkey.Record{Identifier: [32]byte{1}, Sealed: []byte{n}, Fingerprint: [32]byte{n}, KeyID: "0123456789abcdef"}
	}
	var mu sync.Mutex
	inserted := 0
	var wg sync.WaitGroup
	for n := range byte(8) {
		wg.Go(func() {
			existing, err := s.PutViewingKey(context.Background(), record(n))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			} else if existing == nil {
				inserted++
			}
		})
	}
	wg.Wait()
	if inserted != 1 {
		t.Errorf("%d concurrent registrations were inserted, want 1", inserted)
	}
	var all []viewingkey.Record
	err := s.EachViewingKey(ctx, func(r viewingkey.Record) error { all = append(all, r); return nil })
	if err != nil || len(all) != 1 || all[0].KeyID != "0123456789abcdef" {
		t.Errorf("stored viewing keys are %+v (%v), want one", all, err)
	}
}
