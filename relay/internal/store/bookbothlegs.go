package store

// bookBothLegsSQL is what an attempt books on the spend caps, a part of recordSQL. The first leg of a
// swap books the cost of both legs (cost is its own, second_leg_cost that of the second leg), so the second leg's
// attempts book nothing.
const bookBothLegsSQL = `CASE WHEN kind = 'swap_execution' THEN 0 ELSE cost + second_leg_cost END`

// replaceBookingSQL is a part of finalizeSQL. When the second leg of a swap is final, its own cost
// replaces the cost that the first leg booked for it on the spend caps. The lamports that the second
// leg returned are subtracted. Of the attempts that were overtaken by an early attempt, or by an
// earlier one, only the fee remains booked, which they cost if they land; this counts once, also if
// both legs become final together. The changes depend on pinned, because all statements lock the caps'
// buckets last.
const replaceBookingSQL = `overbooked AS MATERIALIZED (
	SELECT a.signature, a.booked - a.cost AS lamports FROM done d JOIN attempts a ON a.submission_id = d.parent
	WHERE NOT a.dead AND a.booked > a.cost AND NOT EXISTS (SELECT FROM done f WHERE f.id = a.submission_id AND f.signature <> a.signature) FOR UPDATE OF a
), overtaken AS MATERIALIZED (
	SELECT a.signature, d.kind = 'transfer' AS transfer, a.booked - a.fee AS lamports FROM done d JOIN attempts a ON a.submission_id = d.id
	WHERE d.parent IS NULL AND a.signature <> d.signature AND NOT a.dead AND a.booked > a.fee FOR UPDATE OF a
), booking_reduced AS (
	UPDATE attempts a SET booked = a.booked - o.lamports
	FROM (SELECT signature, lamports FROM overbooked UNION ALL SELECT signature, lamports FROM overtaken) o WHERE a.signature = o.signature
), spend_change AS (
	SELECT c.transfer, c.lamports FROM (
		SELECT false AS transfer, -returned AS lamports FROM done UNION ALL SELECT false, -lamports FROM overbooked UNION ALL SELECT transfer, -lamports FROM overtaken
		UNION ALL SELECT false, a.cost - CASE WHEN a.dead THEN a.paid ELSE a.booked END FROM done d JOIN attempts a ON a.signature = d.signature AND a.submission_id = d.id
			WHERE d.parent IS NOT NULL AND a.booked IS NOT NULL
	) c WHERE (SELECT count(*) FROM pinned) >= 0
)`
