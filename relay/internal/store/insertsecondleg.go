package store

// insertSecondLegSQL is a part of completeSQL. The landing of a swap's first leg inserts the
// second leg, a row that no other statement can lock before the commit. A repeated landing must
// not try to insert it again: the insert would wait for any transaction that is writing the second
// leg's row, and that transaction may be waiting for the first leg's row.
const insertSecondLegSQL = `second_leg AS (
	INSERT INTO submissions (id, parent, pool, kind, state, content_hash, root_seq, due_at)
	SELECT gen_random_uuid(), id, pool, 'swap_execution', 'pending', content_hash, ` + lastRootSeq + `, now() FROM done
	WHERE kind = 'swap' AND NOT EXISTS (SELECT FROM submissions c WHERE c.parent = done.id)
	ON CONFLICT (parent) WHERE parent IS NOT NULL DO NOTHING RETURNING id, parent
), funded AS (
	INSERT INTO swaps (id, phase, timeout_slot) SELECT b.id, 'funded', d.timeout FROM second_leg b JOIN done d ON d.id = b.parent
)`
