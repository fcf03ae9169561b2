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
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// submissionColumns are the columns that submissionRow.targets scans, in the same order. joinsSQL
// explains the table aliases.
const submissionColumns = `s.id, s.pool, s.kind, s.state, s.root_seq, s.epoch, COALESCE(s.lease_owner, '00000000-0000-0000-0000-000000000000'), s.tries, s.hold_reason,
	s.signature, s.slot, s.leaf_indices, s.root, s.finalized, s.rolled_back,
	s.error_code, s.error_message, s.error_fields, s.created_at, s.completed_at,
	r.proof, COALESCE(r.proof_sign, ''), r.public_inputs, r.recipient, r.notes, r.swap_terms, s.parent,
	w.phase, w.timeout_slot, c.hold_reason, c.signature, c.slot, c.finalized, c.completed_at, c.created_at`

// joinsSQL joins other tables to the submissions s. r is the request; for a second leg it is the
// parent's request. For each leg of a swap, c is the second leg's submission and w is the swap's
// row. For other kinds c and w are null, and the CASE saves the lookup of c.
const joinsSQL = ` LEFT JOIN requests r ON r.submission_id = COALESCE(s.parent, s.id)
	LEFT JOIN submissions c ON c.parent = CASE WHEN s.kind IN ('swap', 'swap_execution') THEN COALESCE(s.parent, s.id) END
	LEFT JOIN swaps w ON w.id = c.id`

// submissionRow is a stored submission.
type submissionRow struct {
	s                              submission.Submission
	pool, proof, inputs, recipient []byte
	notes                          [][]byte
	sig, root, fields              []byte
	rootSeq                        int64
	hold, code, message            *string
	slot                           *int64
	leaves                         []int64
	terms                          []byte
	swap                           swapRow
}

func (r *submissionRow) targets() []any {
	return append([]any{
		&r.s.ID, &r.pool, &r.s.Kind, &r.s.State, &r.rootSeq, &r.s.Epoch, &r.s.Owner, &r.s.Tries, &r.hold,
		&r.sig, &r.slot, &r.leaves, &r.root, &r.s.Finalized, &r.s.RolledBack,
		&r.code, &r.message, &r.fields, &r.s.CreatedAt, &r.s.CompletedAt,
		&r.proof, &r.s.ProofAEncoding, &r.inputs, &r.recipient, &r.notes, &r.terms, &r.s.Parent,
	}, r.swap.targets()...)
}

// submission decodes the row. Public inputs were checked before they were stored, so a row
// whose inputs do not parse is damaged.
func (r *submissionRow) submission() (*submission.Submission, error) {
	s := &r.s
	parsed, err := shieldpool.ParsePublicInputs(r.inputs)
	if err != nil {
		return nil, fmt.Errorf("stored submission is damaged: %w", err)
	}
	s.Pool = solana.PublicKeyFromBytes(r.pool)
	s.Call = &shieldpool.Call{Proof: r.proof, Inputs: parsed, Notes: r.notes}
	if r.recipient != nil {
		s.Call.Recipient = solana.PublicKeyFromBytes(r.recipient)
	}
	if s.Call.Swap, err = swapTerms(r.terms); err != nil {
		return nil, err
	}
	if s.Swap = r.swap.swap(); s.Swap == nil && s.Kind == submission.KindSwapExecution {
		return nil, errors.New("stored second leg is damaged: its swap is missing")
	}
	s.RootSeq = uint64(r.rootSeq) //nolint:gosec // counts of leaves are at most 2^32
	s.Hold = valueOrZero(r.hold)
	s.Signature = signature(r.sig)
	if r.slot != nil {
		s.Slot = uint64(*r.slot) //nolint:gosec // slots are stored from uint64 below 2^63
	}
	for _, i := range r.leaves {
		s.LeafIndices = append(s.LeafIndices, uint64(i)) //nolint:gosec // leaf indices are below 2^32
	}
	if len(r.root) == 32 {
		root := [32]byte(r.root)
		s.Root = &root
	}
	if r.code != nil {
		s.Failure = refusal.New(refusal.Code(*r.code), "%s", valueOrZero(r.message))
		if len(r.fields) > 0 {
			if err := json.Unmarshal(r.fields, &s.Failure.Fields); err != nil {
				return nil, fmt.Errorf("stored failure is damaged: %w", err)
			}
		}
	}
	return s, nil
}

func valueOrZero(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func signature(b []byte) *solana.Signature {
	if len(b) != len(solana.Signature{}) {
		return nil
	}
	sig := solana.Signature(b)
	return &sig
}

const getSQL = `SELECT ` + submissionColumns + ` FROM (SELECT unnest($1::uuid[]) AS wanted LIMIT ` + unknownToPlanner + `) g JOIN submissions s ON s.id = g.wanted` + joinsSQL

// readResult is a submission, nil if there is none, or the error of a damaged row.
type readResult struct {
	sub *submission.Submission
	err error
}

// Get implements submission.Store. Submissions that are wanted at the same time are read together.
func (s *Store) Get(ctx context.Context, id uuid.UUID) (*submission.Submission, error) {
	r, err := s.reads.Do(ctx, id)
	switch {
	case err != nil:
		return nil, unavailable(fmt.Errorf("read submission: %w", err))
	case r.err != nil:
		return nil, r.err
	case r.sub == nil:
		return nil, refusal.New(refusal.NotFound, "no submission has this id: it was never accepted here, or it was finished so long ago that it is no longer kept")
	}
	return r.sub, nil
}

func (s *Store) readTogether(ctx context.Context, ids []uuid.UUID) ([]readResult, error) {
	rows, err := collect(ctx, s, func(row pgx.CollectableRow) (r submissionRow, err error) {
		err = row.Scan(r.targets()...)
		return r, err
	}, getSQL, ids)
	if err != nil {
		return nil, err
	}
	found := make(map[uuid.UUID]submissionRow, len(rows))
	for i := range rows {
		found[rows[i].s.ID] = rows[i]
	}
	out := make([]readResult, len(ids))
	for i, id := range ids {
		if row, ok := found[id]; ok { // row is a copy: callers that want the same submission may change theirs
			out[i].sub, out[i].err = row.submission()
		}
	}
	return out, nil
}

// attemptColumns are the columns that attemptRow.targets scans, in the same order; a is the table
// attempts. They are null if a submission has no attempt, because the join is an outer join.
const attemptColumns = `a.signature, a.raw, a.fee_payer, a.blockhash, a.blockhash_slot, a.last_valid_block_height, a.cost, a.purpose, a.fee, a.paid, a.refused, a.dead, a.created_at, a.lane, a.tip`

type attemptRow struct {
	sig, raw, payer, hash []byte
	slot, height          *int64
	cost, fee, paid       *int64
	purpose               *txmgr.Purpose
	refused, dead         *bool
	at                    *time.Time
	lane                  *string
	tip                   *int64
}

func (a *attemptRow) targets() []any {
	return []any{&a.sig, &a.raw, &a.payer, &a.hash, &a.slot, &a.height, &a.cost, &a.purpose, &a.fee, &a.paid, &a.refused, &a.dead, &a.at, &a.lane, &a.tip}
}

// addTo adds the attempt to the job, if the row has one.
func (a *attemptRow) addTo(job *txmgr.Job) {
	if a.sig == nil {
		return
	}
	attempt := txmgr.Attempt{
		Signature: solana.Signature(a.sig), Raw: a.raw, FeePayer: solana.PublicKeyFromBytes(a.payer), Blockhash: solana.HashFromBytes(a.hash),
		BlockhashSlot: uint64(*a.slot), LastValidBlockHeight: uint64(*a.height), Cost: uint64(*a.cost), //nolint:gosec // stored from uint64 below 2^63
		Fee: uint64(*a.fee), Paid: uint64(*a.paid), Purpose: *a.purpose, Rejected: *a.refused, CreatedAt: *a.at, Lane: *a.lane, Tip: uint64(*a.tip), //nolint:gosec // as above
	}
	if *a.dead {
		job.Dead = append(job.Dead, attempt)
	} else {
		job.Live = append(job.Live, attempt)
	}
}
