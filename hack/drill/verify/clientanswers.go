package verify

import "github.com/relaypool/relaypool/hack/load"

// answersMatch compares the answers that cannot change any more with the database: a failure,
// a finalized success, and a success that no fork undid.
func answersMatch(e *Evidence, r *Result) {
	x := newIndex(e)
	undone := make(map[string]bool, len(e.Undone))
	for signature := range e.Undone {
		undone[signature.String()] = true
	}
	Each(e.Records, func(record *load.Record, _ *load.Request, a *load.Answer) {
		s := x.submissions[a.RequestID]
		if s == nil {
			return // acceptedIsFinal reports it, if it was accepted
		}
		r.Examined++
		if s.Swap != nil {
			x.swapAnswersMatch(record, s, a, undone, r)
			return
		}
		switch {
		case a.Failed() && (s.State != "failed" || s.Code != a.Code):
			r.fault("spend %d: relay %d said at %s that request %s failed with %s; the database says %s %s", record.Number, a.Relay+1, clock(a.At), a.RequestID, a.Code, s.State, s.Code)
		case a.Finalized && (s.State != "completed" || s.Signature.String() != a.Signature):
			r.fault("spend %d: relay %d said at %s that request %s is final with signature %s; the database says %s with %s", record.Number, a.Relay+1, clock(a.At), a.RequestID, a.Signature, s.State, s.Signature)
		case a.State == "completed" && (s.State != "completed" || s.Signature.String() != a.Signature) && !undone[a.Signature]:
			r.fault("spend %d: relay %d said at %s that request %s is completed with signature %s, which no fork undid; the database says %s with %s", record.Number, a.Relay+1, clock(a.At), a.RequestID, a.Signature, s.State, s.Signature)
		}
	})
}

// swapAnswersMatch is answersMatch for a swap, whose two legs may each be undone.
func (x *index) swapAnswersMatch(record *load.Record, s *Submission, a *load.Answer, undone map[string]bool, r *Result) {
	var phase, signature string
	if row := x.executions[s.ID]; row != nil && row.State == "completed" {
		phase, signature = row.Phase, row.Signature.String()
	}
	saidPhase, saidSignature := "", ""
	switch {
	case a.Executed():
		saidPhase, saidSignature = "executed", a.SwapSignature
	case a.Refunded():
		saidPhase, saidSignature = "refunded", a.RefundSignature
	}
	rolledBack := !a.Finalized && (undone[a.Signature] || undone[saidSignature])
	switch {
	case a.Failed() && (s.State != "failed" || s.Code != a.Code):
		r.fault("spend %d: relay %d said at %s that swap %s failed with %s; the database says %s %s", record.Number, a.Relay+1, clock(a.At), a.RequestID, a.Code, s.State, s.Code)
	case a.Signature != "" && s.Signature.String() != a.Signature && !rolledBack:
		r.fault("spend %d: relay %d said at %s that the first leg of swap %s is %s, which no fork undid; the database says %s", record.Number, a.Relay+1, clock(a.At), a.RequestID, a.Signature, s.Signature)
	case saidPhase != "" && (phase != saidPhase || signature != saidSignature) && !rolledBack:
		r.fault("spend %d: relay %d said at %s that swap %s is %s by %s, final %t, which no fork undid; the database says %s by %s", record.Number, a.Relay+1, clock(a.At), a.RequestID, saidPhase, saidSignature, a.Finalized, phase, signature)
	case a.Finalized && saidPhase == "":
		r.fault("spend %d: relay %d said at %s that swap %s is final without saying how it ended", record.Number, a.Relay+1, clock(a.At), a.RequestID)
	}
}

// Each calls f for every answer that a client got.
func Each(records []load.Record, f func(*load.Record, *load.Request, *load.Answer)) {
	for i := range records {
		record := &records[i]
		for k := range record.Requests {
			q := &record.Requests[k]
			for n := range q.Answers {
				f(record, q, &q.Answers[n])
			}
		}
	}
}
