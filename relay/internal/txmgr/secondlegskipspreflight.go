package txmgr

// skipsPreflight reports whether attempts are sent without preflight: an execution or a refund is,
// because it was simulated a moment ago, and a failure on the chain is resolved within seconds.
// After a refusal by preflight, the attempt could be replaced only once it has expired, and by then
// the swap may be past its timeout.
func skipsPreflight(p Purpose) bool { return p != PurposeTransact }
