// Package rpc serves a bank over Solana's JSON-RPC, with the shapes and error
// codes of Agave: the part of its methods that a relay and its clients call.
package rpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"mime"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/localnet/bank"
)

const (
	// version is the release of Agave whose answers these are modelled on.
	version = "2.3.0"
	// maxBody is Agave's default limit on a request, in bytes.
	maxBody = 50 << 10
)

// Options configures a Server. All fields are required.
type Options struct {
	Bank    *bank.Bank
	Genesis solana.Hash
	// Airdrop lands a transaction that gives lamports to an address.
	Airdrop func(to solana.PublicKey, lamports uint64) (solana.Signature, error)
	Log     *slog.Logger
}

// Server answers JSON-RPC over HTTP. It is safe for concurrent use.
type Server struct {
	bank    *bank.Bank
	genesis solana.Hash
	airdrop func(solana.PublicKey, uint64) (solana.Signature, error)
	log     *slog.Logger
	methods map[string]method
	// behind is the number of slots that the node says it is behind.
	behind atomic.Uint64

	mu    sync.Mutex
	calls map[string]uint64
}

// method answers one call with a result to marshal.
type method func(params) (any, *Error)

// New makes a server. The error names the option that is missing.
func New(opts Options) (*Server, error) {
	switch {
	case opts.Bank == nil:
		return nil, errors.New("rpc options: Bank is missing")
	case opts.Airdrop == nil:
		return nil, errors.New("rpc options: Airdrop is missing")
	case opts.Log == nil:
		return nil, errors.New("rpc options: Log is missing")
	case opts.Genesis == solana.Hash{}:
		return nil, errors.New("rpc options: Genesis is missing")
	}
	s := &Server{
		bank: opts.Bank, genesis: opts.Genesis, airdrop: opts.Airdrop, log: opts.Log,
		calls: make(map[string]uint64),
	}
	s.methods = map[string]method{
		"getHealth":                         s.getHealth,
		"getVersion":                        s.getVersion,
		"getGenesisHash":                    s.getGenesisHash,
		"getSlot":                           s.getSlot,
		"getBlockHeight":                    s.getBlockHeight,
		"getEpochInfo":                      s.getEpochInfo,
		"getTransactionCount":               s.getTransactionCount,
		"getLatestBlockhash":                s.getLatestBlockhash,
		"isBlockhashValid":                  s.isBlockhashValid,
		"getMinimumBalanceForRentExemption": s.getMinimumBalanceForRentExemption,
		"getFeeForMessage":                  s.getFeeForMessage,
		"getRecentPrioritizationFees":       s.getRecentPrioritizationFees,
		"getBalance":                        s.getBalance,
		"getAccountInfo":                    s.getAccountInfo,
		"getMultipleAccounts":               s.getMultipleAccounts,
		"requestAirdrop":                    s.requestAirdrop,
		"sendTransaction":                   s.sendTransaction,
		"simulateTransaction":               s.simulateTransaction,
		"getSignatureStatuses":              s.getSignatureStatuses,
		"getSignaturesForAddress":           s.getSignaturesForAddress,
		"getTransaction":                    s.getTransaction,
		"getBlock":                          s.getBlock,
		"getBlocks":                         s.getBlocks,
		"getFirstAvailableBlock":            s.getFirstAvailableBlock,
	}
	return s, nil
}

// Calls counts the calls received since the start, by method; calls of
// methods that do not exist are under "".
func (s *Server) Calls() map[string]uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.calls)
}

// SetSlotsBehind makes the node report itself as that many slots behind the
// cluster, 0 for healthy: getHealth and preflight then fail as they do there.
func (s *Server) SetSlotsBehind(slots uint64) { s.behind.Store(slots) }

// ServeHTTP answers POSTed JSON-RPC calls, single or batched, and GET /health.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && r.URL.Path == "/health" {
		s.serveHealth(w)
		return
	}
	if r.Method != http.MethodPost {
		http.Error(w, "Used HTTP Method is not allowed. POST or OPTIONS is required", http.StatusMethodNotAllowed)
		return
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		http.Error(w, "Supplied content type is not allowed. Content-Type: application/json is required",
			http.StatusUnsupportedMediaType)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		http.Error(w, "Payload too large", http.StatusRequestEntityTooLarge)
		return
	}
	if err != nil {
		// The client is gone: nobody reads an answer.
		return
	}
	answer := s.answer(body)
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	if answer == nil {
		return
	}
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		s.log.Debug("Answer not written", "error", err)
	}
}

func (s *Server) serveHealth(w http.ResponseWriter) {
	text := "ok"
	if s.behind.Load() > 0 {
		text = "behind"
	}
	if _, err := io.WriteString(w, text); err != nil {
		s.log.Debug("Answer not written", "error", err)
	}
}

type request struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
}

type response struct {
	Version string          `json:"jsonrpc"`
	Result  any             `json:"result"`
	ID      json.RawMessage `json:"id"`
}

type errorResponse struct {
	Version string          `json:"jsonrpc"`
	Error   *Error          `json:"error"`
	ID      json.RawMessage `json:"id"`
}

func fail(id json.RawMessage, err *Error) any {
	return errorResponse{Version: "2.0", Error: err, ID: id}
}

// answer gives what to marshal for a body, or nil when nothing is to be said:
// a call without id is a notification.
func (s *Server) answer(body []byte) any {
	body = bytes.TrimSpace(body)
	if len(body) == 0 || body[0] != '[' {
		return s.answerOne(body)
	}
	var calls []json.RawMessage
	if err := json.Unmarshal(body, &calls); err != nil {
		return fail(nil, &Error{Code: codeParse, Message: "Parse error"})
	}
	if len(calls) == 0 {
		return fail(nil, &Error{Code: codeInvalidRequest, Message: "Invalid request"})
	}
	var answers []any
	for _, call := range calls {
		if one := s.answerOne(call); one != nil {
			answers = append(answers, one)
		}
	}
	if answers == nil {
		return nil
	}
	return answers
}

func (s *Server) answerOne(body []byte) any {
	if !json.Valid(body) {
		return fail(nil, &Error{Code: codeParse, Message: "Parse error"})
	}
	var call request
	if err := json.Unmarshal(body, &call); err != nil || call.Version != "2.0" || call.Method == "" {
		return fail(call.ID, &Error{Code: codeInvalidRequest, Message: "Invalid request"})
	}
	result, err := s.call(call)
	switch {
	case call.ID == nil:
		return nil
	case err != nil:
		return fail(call.ID, err)
	default:
		return response{Version: "2.0", Result: result, ID: call.ID}
	}
}

func (s *Server) call(call request) (any, *Error) {
	serve, ok := s.methods[call.Method]
	if !ok {
		s.count("")
		return nil, &Error{Code: codeMethodNotFound, Message: "Method not found"}
	}
	s.count(call.Method)
	p, err := parseParams(call.Params)
	if err != nil {
		return nil, err
	}
	return serve(p)
}

func (s *Server) count(method string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[method]++
}
