package contract

// DefaultSpendCapTransfersDay is the most that a fleet spends on transfers in a day, in
// lamports, unless another cap is set; 0 means no cap. A transfer pays the pool no fee. At 5080
// lamports of rent a byte it costs the relay 1 305 480 lamports, so the default pays for about
// 760 transfers. An attacker can make the fleet spend at most 1 SOL a day.
const DefaultSpendCapTransfersDay int64 = 1_000_000_000
