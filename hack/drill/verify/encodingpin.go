package verify

// pinIsTrue compares the encoding of A that the relays have pinned with the program's.
func pinIsTrue(e *Evidence, r *Result) {
	for _, encoding := range e.Pins {
		r.Examined++
		if encoding != e.ProofAEncoding {
			r.fault("the database records that the program accepts proofs whose A is %s; the program accepts proofs whose A is %s", encoding, e.ProofAEncoding)
		}
	}
}
