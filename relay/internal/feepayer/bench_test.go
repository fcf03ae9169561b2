package feepayer

import (
	"log/slog"
	"testing"
	"time"
)

// BenchmarkPickAndRelease measures what choosing the payer adds to each attempt, with three
// payers.
func BenchmarkPickAndRelease(b *testing.B) {
	o := Options{Balances: &wallets{lamports: []uint64{1 << 60, 1 << 60, 1 << 60}}, Log: slog.New(slog.DiscardHandler), Now: time.Now, MinBalance: 100}
	for i := range byte(3) {
		key, err := Generate(&repeated{i + 1})
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

type repeated struct{ b byte }

func (r *repeated) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = r.b
	}
	return len(p), nil
}
