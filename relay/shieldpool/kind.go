package shieldpool

// Kind is a shape of transaction: all transactions of one kind differ only in the values of
// their bytes.
type Kind string

// The kinds of submission.
const (
	KindTransfer   Kind = "transfer"
	KindWithdrawal Kind = "withdrawal"
	KindSwap       Kind = "swap"
)

// Kind is the shape of the call's transaction.
func (c *Call) Kind() Kind {
	switch {
	case c.Swap != nil:
		return KindSwap
	case c.Inputs.PublicAmount < 0:
		return KindWithdrawal
	default:
		return KindTransfer
	}
}
