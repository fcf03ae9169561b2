package feepayer

import (
	"log/slog"
	"testing"
	"time"
)

// BenchmarkPickAndRelease measures the time to choose and release one of three payers.
func BenchmarkPickAndRelease(b *testing.B) {
	o := Options{Balances: &wallets{lamports: []uint64{1 << 60, 1 << 60, 1 << 60}}, Log: slog.New(slog.DiscardHandler), Now: time.Now, MinBalance: 100}
	for i := range byte(3) {
		key, err := Generate(&repeatedByte{i + 1})
		if err != nil {
			b.Fatal(err)
		}
		o.Keys = append(o.Keys, key)
	}
	p, err := New(o)
	if err != nil {
		b.Fatal(err)
	}
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			payer, err := p.Pick(b.Context(), 1, false)
			if err != nil {
				b.Error(err)
				return
			}
			p.Release(payer.PublicKey(), 1)
		}
	})
}

type repeatedByte struct{ b byte }

func (r *repeatedByte) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = r.b
	}
	return len(p), nil
}
