package contract

// Default ports.
const (
	// APIPort serves clients.
	APIPort = 8080
	// OperationsPort serves metrics and probes.
	OperationsPort = 9090
	// LocalChainPort is the port of the local chain.
	LocalChainPort = 8899
	// LocalAdminPort is the port for the administration of the local chain. LocalRouterPort is
	// the port of the swap router for the local chain's market.
	LocalAdminPort  = 8898
	LocalRouterPort = 8897
)
