package apply

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxRefusal is the maximum length of a Refusal's message, in bytes. The operator copies the
// message into conditions.
const maxRefusal = 512

// UnknownField is the reason of a refusal because the cluster's definition of the kind lacks a field.
const UnknownField = "UnknownField"

// unknownField is in the API server's answer, an internal error without a reason, to an apply with a
// field that its definition of the kind does not have.
const unknownField = "field not declared in schema"

// RefusalOf reports whether the API server refused an object that was written without an Applier,
// and returns the refusal. It must not be used for Secrets: the message of an admission webhook
// may repeat the object's content.
func RefusalOf(ref Ref, err error) (Refusal, bool) { return refusal(ref, err) }

// refusal reports whether the API server refused the object's content, and returns the refusal
// with its message. It returns false for any other error, such as no answer from the API server, a
// conflict with another writer, or a namespace that is being deleted.
func refusal(ref Ref, err error) (Refusal, bool) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return Refusal{}, false
	}
	s := status.Status()
	if s.Code == http.StatusInternalServerError && strings.Contains(s.Message, unknownField) {
		return Refusal{Ref: ref, Reason: UnknownField, Message: bounded("the cluster's definition of the kind is too old: " + s.Message)}, true
	}
	switch s.Code {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
	default:
		return Refusal{}, false
	}
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || wasRecreated(&s) {
		return Refusal{}, false
	}
	reason := string(s.Reason)
	if reason == "" {
		reason = http.StatusText(int(s.Code))
	}
	return Refusal{Ref: ref, Reason: reason, Message: bounded(refusalMessage(&s))}, true
}

// recentlyRefused reports whether the API server refused the same content less than RefusalInterval
// ago. The content is then not written again, and the result contains the earlier refusal.
func (p *pass) recentlyRefused(t target, now time.Time) bool {
	if t.entry.refusedDigest != t.digest || now.Sub(t.entry.refusedAt) >= p.options.RefusalInterval {
		return false
	}
	p.result.Refused = append(p.result.Refused, t.entry.refusal)
	p.result.retryWithin(p.options.RefusalInterval - now.Sub(t.entry.refusedAt))
	return true
}

// recordRefusal records a refusal by the API server and returns nil. It passes any other error to
// recordMissingKind, which handles a kind whose CRD is gone.
func (p *pass) recordRefusal(t target, err error) error {
	if refused, ok := refusal(t.ref, err); ok {
		t.entry.refusedDigest, t.entry.refusedAt, t.entry.refusal = t.digest, p.options.Now(), refused
		p.result.Refused = append(p.result.Refused, refused)
		p.result.retryWithin(p.options.RefusalInterval)
		return nil
	}
	return p.recordMissingKind(t.ref, err)
}

// wasRecreated reports whether the object was recreated between our read and our apply. The API
// server refuses such an apply, because the apply contains the uid that we read.
func wasRecreated(s *metav1.Status) bool {
	if s.Details == nil {
		return false
	}
	for _, c := range s.Details.Causes {
		if c.Field == "metadata.uid" {
			return true
		}
	}
	return false
}

func refusalMessage(s *metav1.Status) string {
	if s.Details != nil && s.Reason == metav1.StatusReasonInvalid {
		var parts []string
		for _, c := range s.Details.Causes {
			if c.Field == "" && c.Type == "" {
				continue
			}
			parts = append(parts, causeMessage(c))
		}
		if len(parts) > 0 {
			return strings.Join(parts, "; ")
		}
	}
	return withoutUsage(withoutPreamble(s.Message))
}

// causeMessage returns the field's path and what is wrong with its value. It omits the
// value, which may be private and may change.
func causeMessage(c metav1.StatusCause) string {
	message := c.Message
	if kind, rest, ok := strings.Cut(message, ": "); ok && strings.HasPrefix(kind, "Invalid value") ||
		strings.HasPrefix(kind, "Unsupported value") || strings.HasPrefix(kind, "Duplicate value") ||
		strings.HasPrefix(kind, "Not found") || strings.HasPrefix(kind, "Too many") {
		message = kind
		if detail := afterValue(rest); detail != "" {
			message += ": " + detail
		}
	}
	if c.Field == "" || c.Field == "<nil>" {
		return message
	}
	return c.Field + ": " + message
}

// afterValue returns the detail in "value: detail", and "" if the two cannot be separated.
func afterValue(rest string) string {
	end := -1
	switch {
	case rest == "":
	case rest[0] == '"':
		if quoted, err := strconv.QuotedPrefix(rest); err == nil {
			end = len(quoted)
		}
	case rest[0] == '{' || rest[0] == '[':
		decoder := json.NewDecoder(strings.NewReader(rest))
		var value json.RawMessage
		if decoder.Decode(&value) == nil {
			end = int(decoder.InputOffset())
		}
	default:
		end = strings.Index(rest, ": ")
	}
	if end < 0 {
		return ""
	}
	detail, ok := strings.CutPrefix(rest[end:], ": ")
	if !ok {
		return ""
	}
	return detail
}

// withoutPreamble drops `deployments.apps "demo" is forbidden: `, because the
// Refusal names the object already.
func withoutPreamble(message string) string {
	for _, verb := range []string{" is forbidden: ", " is invalid: "} {
		if _, rest, ok := strings.Cut(message, verb); ok {
			return rest
		}
	}
	return message
}

// withoutUsage drops a quota's usage from the message. The usage changes by itself, and each
// change of a condition's message would cause a write.
func withoutUsage(message string) string {
	before, rest, ok := strings.Cut(message, ", used: ")
	if !ok {
		return message
	}
	if _, limited, ok := strings.Cut(rest, ", limited: "); ok {
		return before + ", limited: " + limited
	}
	return before
}

func bounded(message string) string {
	message = strings.Join(strings.Fields(message), " ")
	if len(message) <= maxRefusal {
		return message
	}
	const ellipsis = " …"
	cut := maxRefusal - len(ellipsis)
	return strings.ToValidUTF8(message[:cut], "") + ellipsis
}

// OnlyConflicts reports whether err is a conflict with another writer, or joins nothing
// but conflicts.
func OnlyConflicts(err error) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, inner := range joined.Unwrap() {
			if !OnlyConflicts(inner) {
				return false
			}
		}
		return true
	}
	return apierrors.IsConflict(err)
}
