package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/relaypool/relaypool/relay/internal/commitments"
	"github.com/relaypool/relaypool/relay/openapi"
	"github.com/relaypool/relaypool/relay/refusal"
)

const (
	// maxCommitments is the most leaves in one answer: some ten megabytes.
	maxCommitments = 100_000
	// maxListTries is how many times openList tries to open a list if the generation changes
	// during each try.
	maxListTries = 3

	listHead, listTail = `{"commitments":[`, `],"count":`
)

// list is one answer: the leaves [from, to).
type list struct {
	pos      commitments.Position
	from, to uint64
	// tag is the answer's entity tag; text has the entries of the first chunk, and
	// next is the index of the leaf after them.
	tag  string
	text []byte
	next uint64
}

func (l *list) tail() string { return listTail + strconv.FormatUint(l.to-l.from, 10) + "}\n" }

// size is the length of the whole answer, whose last entry has no comma.
func (l *list) size() int64 {
	size := int64(len(listHead)) + textSize(l.from, l.to) + int64(len(l.tail()))
	if l.to > l.from {
		size--
	}
	return size
}

// ListCommitments lists published leaves. The answer is written in chunks that all readers share,
// so that a slow reader does not make the relay keep a whole answer in memory.
func (a *api) ListCommitments(w http.ResponseWriter, r *http.Request, params openapi.ListCommitmentsParams) {
	began := a.Now()
	if err := a.checkQuery(r, params.Mint); err != nil {
		a.fail(w, r, err)
		return
	}
	from, limit, err := page(params)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	release, err := a.readers.acquire(a.clientAddress(r))
	if err != nil {
		a.fail(w, r, err)
		return
	}
	defer release()
	l, err := a.openList(r.Context(), from, limit)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	w.Header().Set("ETag", l.tag)
	if params.IfNoneMatch != nil && matches(*params.IfNoneMatch, l.tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.FormatInt(l.size(), 10))
	if r.Method == http.MethodHead {
		return
	}
	if err := a.writeList(w, r, l, began); err != nil {
		// The client sees that the answer is shorter than its Content-Length. The level is debug,
		// because most often the client has disconnected.
		a.Log.DebugContext(r.Context(), "sending a list response failed", "request_id", requestContextOf(r.Context()).id, "error", disconnectReason(err))
	}
}

// openList chooses the leaves of the answer and reads their first chunk. It does so before
// anything is sent, so that an error can still be answered.
func (a *api) openList(ctx context.Context, from uint64, limit int) (l *list, err error) {
	for range maxListTries {
		if l, err = a.firstChunk(ctx, from, limit); !errors.Is(err, commitments.ErrMoved) {
			return l, err
		}
	}
	return nil, refusal.New(refusal.ChainUnavailable,
		"the list of leaves is being read from the chain anew: send the same request again").Because(err)
}

func (a *api) firstChunk(ctx context.Context, from uint64, limit int) (*list, error) {
	ctx, cancel := a.call(ctx)
	defer cancel()
	pos, err := a.Commitments.Position(ctx)
	if err != nil {
		return nil, err
	}
	l := &list{pos: pos, from: from, to: from}
	if from < pos.Published {
		l.to = min(from+uint64(limit), pos.Published) //nolint:gosec // page gives a limit above zero
	}
	l.next = l.to
	if l.tag, err = a.listTag(ctx, pos.Generation, l.from, l.to); err != nil {
		return nil, err
	}
	if l.from == l.to {
		return l, nil
	}
	l.text, l.next, err = a.chunks.read(ctx, pos, l.from, l.to)
	return l, err
}

func page(params openapi.ListCommitmentsParams) (from uint64, limit int, err error) {
	start := params.FromIndex
	if start == nil {
		start = params.FromIndexOld
	} else if params.FromIndexOld != nil && *params.FromIndexOld != *start {
		return 0, 0, refusal.New(refusal.InvalidRequest, "from_index and fromIndex differ: expected one of them; fromIndex is the older name")
	}
	if start != nil {
		if *start < 0 {
			return 0, 0, refusal.New(refusal.InvalidRequest, "from_index is negative: expected 0 or more")
		}
		from = uint64(*start)
	}
	limit = maxCommitments
	if params.Limit != nil {
		if *params.Limit < 1 {
			return 0, 0, refusal.New(refusal.InvalidRequest, "limit is below one: expected 1 to %d", maxCommitments)
		}
		limit = int(min(*params.Limit, maxCommitments))
	}
	return from, limit, nil
}
