package txmgr

// skipsPreflight reports whether attempts of the purpose are sent without preflight. Executions and
// refunds are: each was simulated a moment ago, and a failure on the chain is resolved within seconds.
// After a refusal by preflight, the attempt could be replaced only once it has expired, and by then
// the swap may be past its timeout.
func skipsPreflight(p Purpose) bool { return p != PurposeTransact }
