package build

// Variables that relay/contract does not have yet.
const (
	envProfileFile = "RELAYPOOL_PROFILE_FILE"
	envMint        = "RELAYPOOL_MINT"
)
