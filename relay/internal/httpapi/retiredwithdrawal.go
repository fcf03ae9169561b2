package httpapi

// isRetiredWithdrawal recognises the former body of POST /withdraw: it has outputs, policy or nf,
// and either no proof_bytes or an object as public_inputs.
func (o object) isRetiredWithdrawal() bool {
	inputs, given := o["public_inputs"]
	if _, proof := o["proof_bytes"]; proof && (!given || kindOf(inputs) != "object") {
		return false
	}
	for _, name := range []string{"outputs", "policy", "nf"} {
		if _, ok := o[name]; ok {
			return true
		}
	}
	return false
}
