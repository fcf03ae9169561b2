package httpapi

// isRetiredWithdrawal recognises the former body of POST /withdraw: it has outputs, policy or nf,
// and either no proof_bytes or an object as public_inputs.
func (o object) isRetiredWithdrawal() bool {
	inputs, hasInputs := o["public_inputs"]
	if _, hasProof := o["proof_bytes"]; hasProof && (!hasInputs || kindOf(inputs) != "object") {
		return false
	}
	for _, name := range []string{"outputs", "policy", "nf"} {
		if _, ok := o[name]; ok {
			return true
		}
	}
	return false
}
