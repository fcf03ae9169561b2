package httpapi

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/relaypool/relaypool/relay/refusal"
)

// FuzzDecodeSubmission: every body is decoded to a request, or refused as a client
// error that repeats nothing of the body. Decoded bytes have only one valid encoding.
func FuzzDecodeSubmission(f *testing.F) {
	for _, seed := range []string{
		`{"proof_bytes":"AAEC","public_inputs":"AwQ=","recipient":"x","encrypted_notes":["qrvM",""]}`,
		`{"proof_bytes":"","public_inputs":"","recipient":null,"encrypted_notes":null}`,
		`{"proof_bytes":"AA-_"}`, `{"proof_bytes":"AB=="}`, `{"proof_bytes":"AAAA\n"}`, `{"proof_bytes":1}`, `{"proof_bytes":"\ud800"}`,
		`{"outputs":[],"policy":{},"nf":""}`, `{"public_inputs":"","proof_bytes":"","encrypted_notes":[null]}`,
		``, ` `, `null`, `[]`, `"x"`, `{}x`, `{"a":{"b":[[[]]]}}`, "\xef\xbb\xbf{}", "{\"\xff\":1}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		req, err := decodeSubmission(raw)
		if err != nil {
			checkRefusal(t, raw, err)
			return
		}
		for _, b := range append([][]byte{req.Proof, req.PublicInputs}, req.Notes...) {
			// Unless the JSON escapes it, the body must contain exactly this text.
			if text := base64.StdEncoding.EncodeToString(b); !bytes.Contains(raw, []byte(text)) && !bytes.ContainsRune(raw, '\\') {
				t.Errorf("%d bytes were decoded from a text that is not their standard base64", len(b))
			}
		}
	})
}

// FuzzDecodeSwap: as FuzzDecodeSubmission. In addition, the body contains the digits
// of an accepted amount.
func FuzzDecodeSwap(f *testing.F) {
	const head = `{"proof_bytes":"","public_inputs":"","output_mint":"a","recipient_ata":"b","min_output_amount":`
	for _, seed := range []string{
		head + `1}`, head + `"18446744073709551615"}`, head + `18446744073709551616}`, head + `-1}`, head + `1.5}`, head + `"1e3"}`, head + `""}`, head + `"\u0031"}`,
		head + `null}`, head + `[]}`, head + `true}`, head + `"0"}`, head + `" 1"}`, `{}`, ``, `null`, `{"outputs":1}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		req, err := decodeSwap(raw)
		if err != nil {
			checkRefusal(t, raw, err)
			return
		}
		if req.Swap == nil || req.Swap.MinOutput == 0 {
			t.Fatalf("a swap was decoded without terms: %+v", req.Swap)
		}
		if digits := strconv.FormatUint(req.Swap.MinOutput, 10); !bytes.Contains(raw, []byte(digits)) && !bytes.ContainsRune(raw, '\\') {
			t.Error("the body does not contain the decoded amount")
		}
	})
}

// FuzzDecodeRegistration: as FuzzDecodeSubmission, without decoded bytes.
func FuzzDecodeRegistration(f *testing.F) {
	for _, seed := range []string{
		`{"user_pubkey":"a","viewing_key":"b","signature":"c","identifier":"d"}`, `{"user_pubkey":"a","viewing_key":"b","signature":"c","identifier":null}`,
		`{"user_pubkey":[]}`, `{"user_pubkey":"a","viewing_key":"b","signature":"c","identifier":1}`, `null`, ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if _, err := decodeRegistration(raw); err != nil {
			checkRefusal(t, raw, err)
		}
	})
}

func checkRefusal(t *testing.T, raw []byte, err error) {
	t.Helper()
	ref, ok := refusal.As(err)
	if !ok || ref.Code.HTTPStatus() != http.StatusBadRequest {
		t.Fatalf("error %v, want a refusal with status 400", err)
	}
	if !utf8.ValidString(ref.Message) || ref.Cause != nil {
		t.Errorf("message %q, cause %v; want valid UTF-8 and no cause", ref.Message, ref.Cause)
	}
	// A message that contains a long piece of the body leaks it.
	const piece = 24
	for i := 0; i+piece <= len(raw); i++ {
		if strings.Contains(ref.Message, string(raw[i:i+piece])) && !strings.Contains(strings.Join(sentences, ""), string(raw[i:i+piece])) {
			t.Errorf("the message repeats the body: %q", ref.Message)
		}
	}
}

// sentences are parts of the messages. A fuzzer sooner or later puts them into a body.
var sentences = []string{
	"proof_bytes is missing: expected a string, bytes in standard base64",
	"public_inputs is missing: expected a string, bytes in standard base64",
	outputMintText, recipientATAText, amountText,
	"min_output_amount is not an amount: expected ; received a JSON number string that is negative or begins with a minus",
	"this body, with outputs, policy or nf, is of a retired form of POST /withdraw",
}
