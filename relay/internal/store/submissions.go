package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// columns are what scan reads, in its order.
const columns = `id, pool, kind, state, proof, proof_sign, public_inputs, recipient, notes, epoch, tries,
	signature, slot, leaf_indices, root, finalized, rolled_back, error_code, error_message, error_fields, created_at, completed_at`

// scan reads one submission. Its public inputs were checked before they were
// stored, so a failure to parse them is a damaged row.
func scan(row pgx.Row) (*submission.Submission, error) {
	var (
		s                              submission.Submission
		pool, proof, inputs, recipient []byte
		notes                          [][]byte
		sig, root, fields              []byte
		slot                           *int64
		leaves                         []int64
		code, message                  *string
	)
	err := row.Scan(&s.ID, &pool, &s.Kind, &s.State, &proof, &s.ProofSign, &inputs, &recipient, &notes, &s.Epoch, &s.Tries,
		&sig, &slot, &leaves, &root, &s.Finalized, &s.RolledBack, &code, &message, &fields, &s.CreatedAt, &s.CompletedAt)
	if err != nil {
		return nil, err
	}
	parsed, err := shieldpool.ParsePublicInputs(inputs)
	if err != nil {
		return nil, fmt.Errorf("stored submission is damaged: %w", err)
	}
	s.Pool = solana.PublicKeyFromBytes(pool)
	s.Call = &shieldpool.Call{Proof: proof, Inputs: parsed, Notes: notes}
	if recipient != nil {
		s.Call.Recipient = solana.PublicKeyFromBytes(recipient)
	}
	s.Signature = signature(sig)
	if slot != nil {
		s.Slot = uint64(*slot) //nolint:gosec // slots are stored from uint64 below 2^63
	}
	for _, i := range leaves {
		s.LeafIndices = append(s.LeafIndices, uint64(i)) //nolint:gosec // leaf indices are below 2^32
	}
	if len(root) == 32 {
		r := [32]byte(root)
		s.Root = &r
	}
	if code != nil {
		s.Failure = refusal.New(refusal.Code(*code), "%s", deref(message))
		if len(fields) > 0 {
			if err := json.Unmarshal(fields, &s.Failure.Fields); err != nil {
				return nil, fmt.Errorf("stored failure is damaged: %w", err)
			}
		}
	}
	return &s, nil
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// Get implements submission.Store.
func (s *Store) Get(ctx context.Context, id uuid.UUID) (*submission.Submission, error) {
	sub, err := scan(s.Pool.QueryRow(ctx, `SELECT `+columns+` FROM submissions WHERE id = $1`, id))
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, refusal.New(refusal.NotFound, "no submission has this id: it was never accepted here, or it was finished so long ago that it is no longer kept")
	}
	if err != nil {
		return nil, unavailable(fmt.Errorf("read submission: %w", err))
	}
	return sub, nil
}

// Claim implements submission.Store.
func (s *Store) Claim(ctx context.Context, id, owner uuid.UUID, lease time.Duration) (*submission.Claimed, error) {
	sub, err := scan(s.Pool.QueryRow(ctx, `UPDATE submissions SET
			lease_owner = $2, lease_until = now() + $3::interval, epoch = epoch + 1, hold_reason = NULL,
			state = CASE WHEN state = 'pending' THEN 'processing' ELSE state END
		WHERE id = $1 AND due_at <= now() AND (lease_until IS NULL OR lease_until < now())
		RETURNING `+columns, id, owner, lease))
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil //nolint:nilnil // not due or leased, as documented
	}
	if err != nil {
		return nil, unavailable(fmt.Errorf("claim submission: %w", err))
	}
	claimed := &submission.Claimed{Submission: sub}
	return claimed, s.attempts(ctx, claimed)
}

func (s *Store) attempts(ctx context.Context, c *submission.Claimed) error {
	rows, err := s.Pool.Query(ctx, `SELECT signature, raw, fee_payer, blockhash, blockhash_slot, last_valid_block_height, created_at, dead
		FROM attempts WHERE submission_id = $1 ORDER BY created_at, signature`, c.ID)
	if err != nil {
		return unavailable(fmt.Errorf("read attempts: %w", err))
	}
	var (
		sig, raw, payer, hash []byte
		slot, height          int64
		at                    time.Time
		dead                  bool
	)
	_, err = pgx.ForEachRow(rows, []any{&sig, &raw, &payer, &hash, &slot, &height, &at, &dead}, func() error {
		a := submission.Attempt{
			Signature: solana.Signature(sig), Raw: append([]byte(nil), raw...), FeePayer: solana.PublicKeyFromBytes(payer),
			Blockhash: solana.HashFromBytes(hash), BlockhashSlot: uint64(slot), LastValidBlockHeight: uint64(height), CreatedAt: at, //nolint:gosec // stored from uint64 below 2^63
		}
		if dead {
			c.Dead = append(c.Dead, a)
		} else {
			c.Live = append(c.Live, a)
		}
		return nil
	})
	if err != nil {
		return unavailable(fmt.Errorf("read attempts: %w", err))
	}
	return nil
}

// Due implements submission.Store.
func (s *Store) Due(ctx context.Context, limit int) ([]uuid.UUID, error) {
	rows, err := s.Pool.Query(ctx, `SELECT id FROM submissions
		WHERE due_at <= now() AND (lease_until IS NULL OR lease_until < now()) ORDER BY due_at LIMIT $1`, limit)
	if err != nil {
		return nil, unavailable(fmt.Errorf("list due submissions: %w", err))
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	return ids, unavailable(err)
}

// Renew implements submission.Store. A lease that was given back in the
// meantime stays so: renewed, it would be nobody's.
func (s *Store) Renew(ctx context.Context, leases []submission.Lease, lease time.Duration) ([]submission.Lease, error) {
	ids, epochs := make([]uuid.UUID, len(leases)), make([]int64, len(leases))
	for i, l := range leases {
		ids[i], epochs[i] = l.ID, l.Epoch
	}
	rows, err := s.Pool.Query(ctx, `UPDATE submissions s SET lease_until = now() + $3::interval
		FROM unnest($1::uuid[], $2::bigint[]) AS held(id, epoch)
		WHERE s.id = held.id AND s.epoch = held.epoch AND s.lease_until IS NOT NULL
		RETURNING s.id, s.epoch`, ids, epochs, lease)
	if err != nil {
		return nil, unavailable(fmt.Errorf("renew leases: %w", err))
	}
	held, err := pgx.CollectRows(rows, pgx.RowToStructByPos[submission.Lease])
	return held, unavailable(err)
}

// Release implements submission.Store.
func (s *Store) Release(ctx context.Context, l submission.Lease, delay time.Duration, hold string) error {
	return s.inTx(ctx, func(tx pgx.Tx) error {
		if err := s.write(ctx, tx, l, `UPDATE submissions SET lease_owner = NULL, lease_until = NULL,
			due_at = now() + $3::interval, hold_reason = NULLIF($4, ''), tries = tries + 1
			WHERE id = $1 AND epoch = $2 AND due_at IS NOT NULL`, delay, hold); err != nil {
			return err
		}
		return s.wake(ctx, tx, wakeUp{SubmissionID: l.ID}, delay)
	})
}

// write runs one statement under a lease; the lease's id and epoch are its first two arguments.
func (s *Store) write(ctx context.Context, tx pgx.Tx, l submission.Lease, sql string, args ...any) error {
	tag, err := tx.Exec(ctx, sql, append([]any{l.ID, l.Epoch}, args...)...)
	if err != nil {
		return fmt.Errorf("write submission: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return submission.ErrLeaseLost
	}
	return nil
}

// RecordAttempt implements submission.Store. Locking the row makes it wait for
// a take-over that is under way, and then lose.
func (s *Store) RecordAttempt(ctx context.Context, l submission.Lease, a submission.Attempt) error {
	return s.inTx(ctx, func(tx pgx.Tx) error {
		return s.write(ctx, tx, l, `INSERT INTO attempts
			(submission_id, epoch, signature, raw, fee_payer, blockhash, blockhash_slot, last_valid_block_height)
			SELECT id, epoch, $3, $4, $5, $6, $7, $8 FROM submissions
			WHERE id = $1 AND epoch = $2 AND state = 'processing' AND lease_until > now() FOR UPDATE`,
			a.Signature[:], a.Raw, a.FeePayer.Bytes(), a.Blockhash[:], int64(a.BlockhashSlot), int64(a.LastValidBlockHeight)) //nolint:gosec // slots and heights are below 2^63
	})
}

// BuryAttempts implements submission.Store.
func (s *Store) BuryAttempts(ctx context.Context, l submission.Lease, signatures []solana.Signature) error {
	raw := make([][]byte, len(signatures))
	for i := range signatures {
		raw[i] = signatures[i][:]
	}
	return s.inTx(ctx, func(tx pgx.Tx) error {
		return s.write(ctx, tx, l, `UPDATE attempts a SET dead = true FROM submissions s
			WHERE s.id = $1 AND s.epoch = $2 AND a.submission_id = s.id AND a.signature = ANY($3)`, raw)
	})
}
