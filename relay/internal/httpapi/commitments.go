package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/relaypool/relaypool/relay/internal/commitments"
	"github.com/relaypool/relaypool/relay/openapi"
	"github.com/relaypool/relaypool/relay/refusal"
)

const (
	// maxCommitments is the most leaves in one answer: some ten megabytes of JSON.
	maxCommitments = 100_000
	// maxListTries is how many times openList tries to open a list if the generation changes
	// during each try.
	maxListTries = 3
)

// listRequest is what a client asks for: leaves from an index on, at most limit.
type listRequest struct {
	from   uint64
	limit  int
	format format
	began  time.Time
	// head asks for the tag alone. has reports whether the client has the answer with a tag, and hasOnly
	// whether it has no other.
	head         bool
	has, hasOnly func(tag string) bool
}

// list is one answer: the leaves [from, to).
type list struct {
	listRequest
	pos commitments.Position
	to  uint64
	// tag is the answer's entity tag.
	tag   string
	store *chunkStore
	// text is sent next, and then stored. next is the index of the leaf after them; ended says that
	// nothing is. sum and size are the checksum and the length of what was compressed so far.
	text   []byte
	stored chunk
	next   uint64
	ended  bool
	sum    uint32
	size   int64
}

// ListCommitments lists published leaves. The answer is written in chunks that all readers share,
// so that a slow reader does not make the relay keep a whole answer in memory.
func (a *api) ListCommitments(w http.ResponseWriter, r *http.Request, params openapi.ListCommitmentsParams) {
	request := listRequest{format: formatFor(r.Header), began: a.Now(), head: r.Method == http.MethodHead}
	request.has = func(tag string) bool { return params.IfNoneMatch != nil && matches(*params.IfNoneMatch, tag) }
	request.hasOnly = func(tag string) bool { return params.IfNoneMatch != nil && *params.IfNoneMatch == tag }
	if err := a.checkQuery(r, params.Mint); err != nil {
		a.fail(w, r, err)
		return
	}
	var err error
	if request.from, request.limit, err = page(params); err != nil {
		a.fail(w, r, err)
		return
	}
	release, err := a.readers.acquire(a.clientAddress(r))
	if err != nil {
		a.fail(w, r, err)
		return
	}
	defer release()
	buffer := a.buffers.get()
	defer a.buffers.put(buffer)
	l := &list{listRequest: request, text: (*buffer)[:0]}
	if err := a.openList(r.Context(), l); err != nil {
		a.fail(w, r, err)
		return
	}
	w.Header().Set("ETag", l.tag)
	w.Header().Add("Vary", "Accept, Accept-Encoding") // beside CORS
	w.Header().Set("Cache-Control", a.cacheControl(l, params))
	if l.has(l.tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	l.format.setHeader(w.Header())
	if size, known := a.length(l); known {
		w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
	}
	if l.head {
		return
	}
	err = a.writeList(w, r, l)
	*buffer = l.text
	if err != nil {
		// The level is debug, because most often the client has disconnected.
		a.Log.DebugContext(r.Context(), "sending a list response failed", "request_id", requestContextOf(r.Context()).id, "error", disconnectReason(err))
		panic(http.ErrAbortHandler) // an answer without Content-Length must not end as if it were complete
	}
}

// openList chooses the leaves of the answer and reads their first chunk, unless the tag alone is
// needed. It does so before anything is sent, so that an error can still be answered.
func (a *api) openList(ctx context.Context, l *list) error {
	ctx, cancel := a.call(ctx)
	defer cancel()
	known := a.newest.get(l.began)
	var err error
	for range maxListTries {
		if err = a.choose(ctx, l, known); err == nil && !l.head && !l.has(l.tag) {
			err = a.nextPart(ctx, l)
		}
		if !errors.Is(err, commitments.ErrMoved) {
			return err
		}
		known = commitments.Position{}
	}
	return refusal.New(refusal.ChainUnavailable,
		"the list of leaves is being read from the chain anew: send the same request again").Because(err)
}

// choose chooses the leaves. It asks the database for the newest, unless the known position is enough.
func (a *api) choose(ctx context.Context, l *list, known commitments.Position) error {
	if known.Published > l.from && a.chunks.has(known.Generation) {
		err := a.chooseAt(ctx, l, known)
		if err != nil || l.to-l.from == uint64(l.limit) || l.hasOnly(l.tag) { //nolint:gosec // page gives a limit above zero
			return err
		}
	}
	pos, newest, err := a.Commitments.Newest(ctx)
	if err != nil {
		return err
	}
	if err := a.chunks.compare(pos, newest); err != nil {
		return err
	}
	a.newest.set(pos, l.began)
	return a.chooseAt(ctx, l, pos)
}

func (a *api) chooseAt(ctx context.Context, l *list, pos commitments.Position) (err error) {
	*l = list{listRequest: l.listRequest, pos: pos, store: a.chunks.of(pos.Generation), to: l.from, next: l.from, text: l.text[:0]}
	if l.from < pos.Published {
		l.to = min(l.from+uint64(l.limit), pos.Published) //nolint:gosec // page gives a limit above zero
	}
	l.tag, err = a.listTag(ctx, l)
	return err
}

// cacheControl lets clients keep for ever what a request will always get: all the leaves that it
// names, none of which can change. Anything else has to be asked for again, with the tag.
func (a *api) cacheControl(l *list, params openapi.ListCommitmentsParams) string {
	generation, final := a.FinalCommitments()
	named := params.Limit != nil && (params.FromIndex != nil || params.FromIndexOld != nil)
	if named && generation == l.pos.Generation && l.to <= final && int64(l.to-l.from) == min(*params.Limit, maxCommitments) { //nolint:gosec // an answer's leaves at most
		return "max-age=31536000, immutable"
	}
	return "no-cache"
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
