package httpapi_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/relaypool/relaypool/relay/internal/commitments"
	"github.com/relaypool/relaypool/relay/internal/httpapi"
)

var listFormats = map[string]struct {
	header       http.Header
	wantEncoding string
	decode       func(t *testing.T, body []byte) []byte
}{
	"json": {header: http.Header{}, decode: func(_ *testing.T, body []byte) []byte { return body }},
	"zstd": {header: http.Header{"Accept-Encoding": {"zstd"}}, wantEncoding: "zstd", decode: func(t *testing.T, body []byte) []byte {
		t.Helper()
		d, err := zstd.NewReader(bytes.NewReader(body))
		return readAll(t, d, err)
	}},
	"gzip": {header: http.Header{"Accept-Encoding": {"gzip"}}, wantEncoding: "gzip", decode: func(t *testing.T, body []byte) []byte {
		t.Helper()
		d, err := gzip.NewReader(bytes.NewReader(body))
		return readAll(t, d, err)
	}},
	"binary": {header: http.Header{"Accept": {"application/octet-stream"}}, decode: func(_ *testing.T, body []byte) []byte { return body }},
}

func readAll(t *testing.T, r io.Reader, err error) []byte {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func getAs(path string, header http.Header) *http.Request {
	r := get(path)
	for name, values := range header {
		r.Header[name] = values
	}
	return r
}

func TestAListIsTheSameInEveryFormat(t *testing.T) {
	t.Parallel()
	queries := map[string]string{
		"three full chunks and a part":     "",
		"from inside a chunk":              "?from_index=980&limit=2000",
		"exactly two chunks":               "?from_index=1000&limit=2000",
		"inside one chunk":                 "?from_index=1030&limit=7",
		"across a chunk's end, on neither": "?from_index=1990&limit=20",
		"the last leaf":                    "?from_index=3499",
		"no leaf":                          "?from_index=3500",
	}
	cors := newFixture(t, publishedLeaves(3500), func(o *httpapi.Options) { o.CORSOrigins = []string{"https://app.example"} })
	rec := httptest.NewRecorder()
	cors.handler.ServeHTTP(rec, getAs("/commitments", http.Header{"Origin": {"https://app.example"}}))
	if vary := rec.Header().Values("Vary"); !slices.Contains(vary, "Origin") || !slices.Contains(vary, "Accept, Accept-Encoding") {
		t.Errorf("with CORS the answer varies by %q, want by the origin, too", vary)
	}
	f := newFixture(t, publishedLeaves(3500))
	for name, query := range queries {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, want := f.do(t, get("/commitments"+query))
			count := int(object(t, want)["count"].(float64))
			tags := map[string]string{}
			for range 2 { // the second time from the cache
				for format, tt := range listFormats {
					rec := httptest.NewRecorder()
					f.handler.ServeHTTP(rec, getAs("/commitments"+query, tt.header))
					h := rec.Header()
					if rec.Code != http.StatusOK || h.Get("Content-Encoding") != tt.wantEncoding || h.Get("Vary") != "Accept, Accept-Encoding" {
						t.Errorf("%s: status %d, headers %v", format, rec.Code, h)
					}
					if h.Get("Content-Length") != "" && h.Get("Content-Length") != fmt.Sprint(rec.Body.Len()) {
						t.Errorf("%s: Content-Length %s, the body has %d bytes", format, h.Get("Content-Length"), rec.Body.Len())
					}
					got := tt.decode(t, rec.Body.Bytes())
					if format == "binary" {
						if h.Get("Content-Type") != "application/octet-stream" {
							t.Errorf("binary leaves have the type %s", h.Get("Content-Type"))
						}
						got = asJSON(t, object(t, want), got)
					}
					if !bytes.Equal(got, want) {
						t.Errorf("%s has %d leaves' text of %d bytes, want %d bytes:\n%.200s", format, count, len(got), len(want), got)
					}
					tags[format] = h.Get("Etag")
				}
			}
			for format, tag := range tags {
				for other, tt := range listFormats {
					r := getAs("/commitments"+query, tt.header)
					r.Header.Set("If-None-Match", tag)
					rec := httptest.NewRecorder()
					f.handler.ServeHTTP(rec, r)
					if (rec.Code == http.StatusNotModified) != (format == other) {
						t.Errorf("%s is asked for with the tag of %s: status %d", other, format, rec.Code)
					}
				}
			}
		})
	}
}

// asJSON writes leaves of 32 bytes as a list whose first index is that of the wanted list.
func asJSON(t *testing.T, want map[string]any, leaves []byte) []byte {
	t.Helper()
	entries, _ := want["commitments"].([]any)
	text := bytes.NewBufferString(`{"commitments":[`)
	for i := 0; i < len(leaves); i += 32 {
		entry, _ := entries[i/32].(map[string]any)
		if i > 0 {
			text.WriteByte(',')
		}
		fmt.Fprintf(text, `{"commitment":"%x","index":%.0f}`, leaves[i:i+32], entry["index"])
	}
	fmt.Fprintf(text, "],\"count\":%d}\n", len(leaves)/32)
	return text.Bytes()
}

// The first readers make the relay encode the list, and later ones are sent it from a file.
func TestReadersOfAStoredList(t *testing.T) {
	t.Parallel()
	d := publishedLeaves(120_000)
	address, f := serveList(t, d), newFixture(t, d, func(o *httpapi.Options) { o.ClientIPHeader = "X-Real-IP" })
	for format, tt := range listFormats {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			for round := range 2 {
				var readers sync.WaitGroup
				for _, query := range []string{"?limit=100000", "?from_index=20000&limit=100000", "?from_index=990&limit=70000", "?from_index=100000"} {
					readers.Go(func() {
						want, r := httptest.NewRecorder(), getAs("/commitments"+query, tt.header)
						r.Header.Set("X-Real-IP", fmt.Sprintf("192.0.2.%d", format[0])) // an address may read eight at once
						f.handler.ServeHTTP(want, r.Clone(t.Context()))
						r.URL.Scheme, r.URL.Host, r.RequestURI = "http", address, ""
						resp, err := (&http.Transport{DisableCompression: true}).RoundTrip(r)
						if err != nil {
							t.Error(err)
							return
						}
						body, err := io.ReadAll(resp.Body)
						if err = errors.Join(err, resp.Body.Close()); err != nil || !bytes.Equal(body, want.Body.Bytes()) {
							t.Errorf("%s: got %d bytes, want the %d bytes of a recorded answer, error %v", query, len(body), want.Body.Len(), err)
						}
						if whole := query != "?from_index=990&limit=70000"; whole && round > 0 && resp.ContentLength != int64(len(body)) {
							t.Errorf("%s: a stored answer has the Content-Length %d, want %d", query, resp.ContentLength, len(body))
						}
					})
				}
				readers.Wait()
			}
		})
	}
}

// The list grows while relays serve it, so that the last chunk becomes a full one.
func TestAGrowingListIsServed(t *testing.T) {
	t.Parallel()
	d := publishedLeaves(0)
	f := newFixture(t, d)
	for _, leaves := range []uint64{1, 980, 999, 1000, 1001, 1999, 2050} {
		*d = *publishedLeaves(leaves)
		for format, tt := range listFormats {
			rec := httptest.NewRecorder()
			f.handler.ServeHTTP(rec, getAs("/commitments", tt.header))
			body := tt.decode(t, rec.Body.Bytes())
			if format == "binary" {
				if len(body) != int(leaves)*32 {
					t.Errorf("%d leaves in binary have %d bytes", leaves, len(body))
				}
				continue
			}
			list := object(t, body)
			if entries, _ := list["commitments"].([]any); list["count"] != float64(leaves) || len(entries) != int(leaves) {
				t.Errorf("%s has %d leaves and the count %v, want %d", format, len(entries), list["count"], leaves)
			}
		}
	}
}

// Without a Content-Length, only a broken connection shows that an answer is incomplete.
func TestAnIncompleteAnswerBreaksOff(t *testing.T) {
	t.Parallel()
	for format, tt := range listFormats {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			d := publishedLeaves(50_000)
			inner := d.read
			d.read = func(generation, from uint64, limit int) ([]commitments.IndexedCommitment, error) {
				if from == 39_999 {
					return nil, commitments.ErrMoved
				}
				return inner(generation, from, limit)
			}
			r := getAs("/commitments", tt.header)
			r.URL.Scheme, r.URL.Host, r.RequestURI = "http", serveList(t, d), ""
			resp, err := (&http.Transport{DisableCompression: true}).RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
			if n, err := io.Copy(io.Discard, resp.Body); err == nil {
				t.Errorf("an incomplete answer of %d bytes ends like a complete one", n)
			}
		})
	}
}
