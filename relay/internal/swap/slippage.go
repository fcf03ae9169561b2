package swap

import "math/big"

// wholeBps is 100 percent, in hundredths of a percent.
const wholeBps = 10_000

// slippageFor returns the largest slippage, in hundredths of a percent, that cannot reduce an
// output of out below minimum. It rounds down, in favour of the user.
func slippageFor(out, minimum uint64) int {
	room := new(big.Int).SetUint64(out - minimum)
	room.Mul(room, big.NewInt(wholeBps)).Div(room, new(big.Int).SetUint64(out))
	return int(room.Int64())
}
