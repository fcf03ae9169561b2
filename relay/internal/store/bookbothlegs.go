package store

// bookBothLegsSQL is what an attempt books on the spend caps, a part of recordSQL. The first leg of a
// swap books the cost of both legs ($10 is its own, $13 that of the second leg), so the second leg's
// attempts book nothing.
const bookBothLegsSQL = `CASE WHEN kind = 'swap_execution' THEN 0 ELSE $10::bigint + $13 END`

// replaceBookingSQL is a part of finalizeSQL. When the second leg of a swap is final, its own cost
// replaces the cost that the first leg booked for it on the spend caps. The lamports that the second
// leg returned are subtracted. The changes depend on pinned, because all statements lock the caps'
// buckets last.
const replaceBookingSQL = `overbooked AS MATERIALIZED (
	SELECT a.signature, a.booked - a.cost AS lamports FROM done d JOIN attempts a ON a.submission_id = d.parent
	WHERE NOT a.dead AND a.booked > a.cost FOR UPDATE OF a
), booking_reduced AS (
	UPDATE attempts a SET booked = a.cost FROM overbooked o WHERE a.signature = o.signature
), spend_change AS (
	SELECT false AS transfer, c.lamports FROM (
		SELECT -returned AS lamports FROM done UNION ALL SELECT -lamports FROM overbooked
		UNION ALL SELECT a.cost - CASE WHEN a.dead THEN a.paid ELSE a.booked END FROM done d JOIN attempts a ON a.signature = d.signature AND a.submission_id = d.id
			WHERE d.parent IS NOT NULL AND a.booked IS NOT NULL
	) c WHERE (SELECT count(*) FROM pinned) >= 0
)`
