package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/relaypool/relaypool/relay/internal/viewingkey"
)

// PutViewingKey implements viewingkey.Store. The table's primary key lets only one of several
// concurrent inserts succeed.
func (s *Store) PutViewingKey(ctx context.Context, r viewingkey.Record) (*viewingkey.Record, error) {
	tag, err := s.Pool.Exec(ctx, `INSERT INTO viewing_keys (identifier, sealed, fingerprint, key_id)
		VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`, r.Identifier[:], r.Sealed, r.Fingerprint[:], r.KeyID)
	if err != nil {
		return nil, unavailable(fmt.Errorf("insert viewing key: %w", err))
	}
	if tag.RowsAffected() == 1 {
		return nil, nil //nolint:nilnil // inserted, as documented
	}
	existing, err := s.ViewingKey(ctx, r.Identifier)
	if err == nil && existing == nil {
		return nil, errors.New("a viewing key vanished between insert and read, although nothing deletes viewing keys")
	}
	return existing, err
}

// ViewingKey implements viewingkey.Store.
func (s *Store) ViewingKey(ctx context.Context, identifier [32]byte) (*viewingkey.Record, error) {
	r, err := scanViewingKey(s.Pool.QueryRow(ctx, `SELECT identifier, sealed, fingerprint, key_id
		FROM viewing_keys WHERE identifier = $1`, identifier[:]))
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil //nolint:nilnil // none, as documented
	}
	if err != nil {
		return nil, unavailable(fmt.Errorf("read viewing key: %w", err))
	}
	return r, nil
}

// EachViewingKey calls f with every stored key, oldest first, for the
// compliance officer's export.
func (s *Store) EachViewingKey(ctx context.Context, f func(viewingkey.Record) error) error {
	rows, err := s.Pool.Query(ctx, `SELECT identifier, sealed, fingerprint, key_id FROM viewing_keys ORDER BY created_at, identifier`)
	if err != nil {
		return unavailable(fmt.Errorf("read viewing keys: %w", err))
	}
	defer rows.Close()
	for rows.Next() {
		r, err := scanViewingKey(rows)
		if err != nil {
			return unavailable(fmt.Errorf("read viewing keys: %w", err))
		}
		if err := f(*r); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return unavailable(fmt.Errorf("read viewing keys: %w", err))
	}
	return nil
}

func scanViewingKey(row pgx.Row) (*viewingkey.Record, error) {
	var r viewingkey.Record
	var identifier, fingerprint []byte
	if err := row.Scan(&identifier, &r.Sealed, &fingerprint, &r.KeyID); err != nil {
		return nil, err
	}
	if len(identifier) != len(r.Identifier) || len(fingerprint) != len(r.Fingerprint) {
		return nil, errors.New("stored viewing key is damaged: its identifier or fingerprint is not 32 bytes")
	}
	r.Identifier, r.Fingerprint = [32]byte(identifier), [32]byte(fingerprint)
	return &r, nil
}
