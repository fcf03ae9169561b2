// Package refusal holds the stable machine codes of the relay's error envelope, the HTTP
// status of each, and the error type that carries a code to the client.
package refusal

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"
)

// Code is a stable machine code of the error envelope. Clients branch on it,
// so a published code never changes its meaning.
type Code string

// The codes of the documented interface, grouped by HTTP status.
const (
	InvalidJSON               Code = "invalid_json"
	InvalidRequest            Code = "invalid_request"
	InvalidEncoding           Code = "invalid_encoding"
	InvalidProofLength        Code = "invalid_proof_length"
	InvalidPublicInputsLength Code = "invalid_public_inputs_length"
	NonCanonicalField         Code = "non_canonical_field"
	DuplicateNullifier        Code = "duplicate_nullifier"
	NoInput                   Code = "no_input"
	InvalidPublicAmount       Code = "invalid_public_amount"
	DepositNotRelayed         Code = "deposit_not_relayed"
	WithdrawalRequired        Code = "withdrawal_required"
	AmountBelowFee            Code = "amount_below_fee"
	RecipientRequired         Code = "recipient_required"
	InvalidRecipient          Code = "invalid_recipient"
	RecipientBelowRent        Code = "recipient_below_rent"
	ExtDataMismatch           Code = "ext_data_mismatch"
	UnknownMint               Code = "unknown_mint"
	TooManyNotes              Code = "too_many_notes"
	NotesTooLarge             Code = "notes_too_large"
	InvalidSwap               Code = "invalid_swap"
	ProofInvalid              Code = "proof_invalid"
	RootNotFound              Code = "root_not_found"
	InvalidViewingKey         Code = "invalid_viewing_key"
	InvalidIdentifier         Code = "invalid_identifier"
	LegacyWithdrawRetired     Code = "legacy_withdraw_retired"

	InvalidSignature Code = "invalid_signature"
	// Unauthorized: the relay serves only clients with an API key.
	Unauthorized Code = "unauthorized"

	NotFound             Code = "not_found"
	RouteNotFound        Code = "route_not_found"
	MethodNotAllowed     Code = "method_not_allowed"
	BodyTooLarge         Code = "body_too_large"
	UnsupportedMediaType Code = "unsupported_media_type"

	NullifierSpent       Code = "nullifier_spent"
	NullifierReserved    Code = "nullifier_reserved"
	IdentifierConflict   Code = "identifier_conflict"
	IdempotencyKeyReused Code = "idempotency_key_reused"
	// SwapRefunded is the code for a swap whose lamports were returned to the recipient's wallet.
	SwapRefunded Code = "swap_refunded"

	ProgramError Code = "program_error"
	RateLimited  Code = "rate_limited"
	Internal     Code = "internal"
	NotAvailable Code = "not_available"

	PoolNotInitialised  Code = "pool_not_initialised"
	PoolBusy            Code = "pool_busy"
	ChainUnavailable    Code = "chain_unavailable"
	DatabaseUnavailable Code = "database_unavailable"
	FeePayerEmpty       Code = "fee_payer_empty"
	SpendCapReached     Code = "spend_cap_reached"
)

// statuses maps each code to the HTTP status that the interface documents.
var statuses = map[Code]int{
	InvalidJSON:               http.StatusBadRequest,
	InvalidRequest:            http.StatusBadRequest,
	InvalidEncoding:           http.StatusBadRequest,
	InvalidProofLength:        http.StatusBadRequest,
	InvalidPublicInputsLength: http.StatusBadRequest,
	NonCanonicalField:         http.StatusBadRequest,
	DuplicateNullifier:        http.StatusBadRequest,
	NoInput:                   http.StatusBadRequest,
	InvalidPublicAmount:       http.StatusBadRequest,
	DepositNotRelayed:         http.StatusBadRequest,
	WithdrawalRequired:        http.StatusBadRequest,
	AmountBelowFee:            http.StatusBadRequest,
	RecipientRequired:         http.StatusBadRequest,
	InvalidRecipient:          http.StatusBadRequest,
	RecipientBelowRent:        http.StatusBadRequest,
	ExtDataMismatch:           http.StatusBadRequest,
	UnknownMint:               http.StatusBadRequest,
	TooManyNotes:              http.StatusBadRequest,
	NotesTooLarge:             http.StatusBadRequest,
	InvalidSwap:               http.StatusBadRequest,
	ProofInvalid:              http.StatusBadRequest,
	RootNotFound:              http.StatusBadRequest,
	InvalidViewingKey:         http.StatusBadRequest,
	InvalidIdentifier:         http.StatusBadRequest,
	LegacyWithdrawRetired:     http.StatusBadRequest,
	InvalidSignature:          http.StatusUnauthorized,
	Unauthorized:              http.StatusUnauthorized,
	NotFound:                  http.StatusNotFound,
	RouteNotFound:             http.StatusNotFound,
	MethodNotAllowed:          http.StatusMethodNotAllowed,
	BodyTooLarge:              http.StatusRequestEntityTooLarge,
	UnsupportedMediaType:      http.StatusUnsupportedMediaType,
	NullifierSpent:            http.StatusConflict,
	NullifierReserved:         http.StatusConflict,
	IdentifierConflict:        http.StatusConflict,
	IdempotencyKeyReused:      http.StatusConflict,
	SwapRefunded:              http.StatusConflict,
	ProgramError:              http.StatusUnprocessableEntity,
	RateLimited:               http.StatusTooManyRequests,
	Internal:                  http.StatusInternalServerError,
	NotAvailable:              http.StatusNotImplemented,
	PoolNotInitialised:        http.StatusServiceUnavailable,
	PoolBusy:                  http.StatusServiceUnavailable,
	ChainUnavailable:          http.StatusServiceUnavailable,
	DatabaseUnavailable:       http.StatusServiceUnavailable,
	FeePayerEmpty:             http.StatusServiceUnavailable,
	SpendCapReached:           http.StatusServiceUnavailable,
}

// All returns every code, sorted.
func All() []Code { return slices.Sorted(maps.Keys(statuses)) }

// HTTPStatus returns the status that the interface documents for the code; 500 for an
// undocumented code.
func (c Code) HTTPStatus() int {
	if s, ok := statuses[c]; ok {
		return s
	}
	return http.StatusInternalServerError
}

// Refusal is an error for the client. It says what is wrong, what was expected and received (as a
// length or a kind, never a value), and what to do. Every other error is a fault of the relay;
// for it the client gets the code internal.
type Refusal struct {
	Code    Code
	Message string
	// Fields are further members of the error envelope, such as nullifier_index or
	// current_root; nil when there are none.
	Fields map[string]any
	// RetryAfter is the time after which the same request may succeed; 0 when it never will, or
	// when the client has to change it first. It is sent in whole seconds, rounded up.
	RetryAfter time.Duration
	// Cause is the error behind the refusal. It is logged, but never sent to the client.
	Cause error
}

// New makes a refusal whose message is formatted like fmt.Sprintf.
func New(code Code, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Error returns code, message and cause, for the relay's log. Clients do not get the cause.
func (r *Refusal) Error() string {
	text := string(r.Code) + ": " + r.Message
	if r.Cause != nil {
		text += ": " + r.Cause.Error()
	}
	return text
}

// Unwrap returns the cause, if any.
func (r *Refusal) Unwrap() error { return r.Cause }

// With returns a copy of the refusal that carries one more envelope field.
func (r *Refusal) With(name string, value any) *Refusal {
	c := *r
	c.Fields = make(map[string]any, len(r.Fields)+1)
	for k, v := range r.Fields {
		c.Fields[k] = v
	}
	c.Fields[name] = value
	return &c
}

// Retry returns a copy of the refusal with the time after which the client may try again.
func (r *Refusal) Retry(after time.Duration) *Refusal {
	c := *r
	c.RetryAfter = after
	return &c
}

// Because returns a copy of the refusal with the cause for the relay's log.
func (r *Refusal) Because(cause error) *Refusal {
	c := *r
	c.Cause = cause
	return &c
}

// As finds the refusal in an error's chain.
func As(err error) (*Refusal, bool) {
	var r *Refusal
	ok := errors.As(err, &r)
	return r, ok
}
