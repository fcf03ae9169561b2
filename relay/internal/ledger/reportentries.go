package ledger

import "context"

// reportStep counts and logs the entries that a step has added.
func (r *Reconciler) reportStep(ctx context.Context, from *Cursor, b *accumulator) {
	if from == nil {
		r.Log.InfoContext(ctx, "fee payer accounting initialised", "payer", b.payer, "opening", b.cursor.Opening, "slot", b.cursor.Slot)
	}
	r.reportGaps(ctx, b)
	for i := range b.entries {
		e := &b.entries[i]
		r.Observer.EntryAdded(e.Kind, e.Amounts)
		switch {
		case e.Kind == KindUnknown:
			r.Log.ErrorContext(ctx, "transaction signed by a fee payer is not in the database; somebody else has the key, or rows were lost",
				"payer", e.Payer, "signature", e.Signature, "slot", e.Slot, "lamports", e.Spent())
		case e.Other != 0:
			r.Log.ErrorContext(ctx, "transaction cost more than fee and rent",
				"payer", e.Payer, "signature", e.Signature, "slot", e.Slot, "lamports", e.Other)
		case e.Kind == KindSweep:
			r.Log.InfoContext(ctx, "lamports moved between keys of the operator", "payer", e.Payer, "lamports", e.Moved)
		case e.Kind == KindReceived:
			r.Log.InfoContext(ctx, "lamports received", "payer", e.Payer, "lamports", e.Received)
		}
	}
}
