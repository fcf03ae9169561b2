package onchain

import (
	"fmt"
	"strings"

	"github.com/gagliardetto/solana-go"
)

// SOL writes lamports in SOL, exactly and without the unit, such as 0.05.
func SOL(lamports uint64) string {
	text := fmt.Sprintf("%d.%09d", lamports/solana.LAMPORTS_PER_SOL, lamports%solana.LAMPORTS_PER_SOL)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}
