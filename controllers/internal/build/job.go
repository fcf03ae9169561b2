package build

// Rotation is one step of a rotation that a Job does.
type Rotation struct {
	Step Step
	// Revision that the rotation leads to.
	Revision int32
	// From are the old payers' keys, To the new ones'.
	From, To []PayerMount
}
