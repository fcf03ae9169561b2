package contract

import "path"

// Root is the folder in a pod that contains everything that the operator mounts for the
// relay.
const Root = "/etc/relaypool"

// Files that the operator mounts.
const (
	// EndpointsFile lists the RPC endpoints.
	EndpointsFile = Root + "/config/endpoints.yaml"
	// SignInMessagesFile lists the sign-in texts. A wallet signs one to register a viewing key.
	SignInMessagesFile = Root + "/config/sign-in-messages.yaml"
	// ProfileFile contains a program profile that is not built in.
	ProfileFile = Root + "/profile/profile.yaml"
	// VerifyingKeyFile is snarkjs' verification_key.json.
	VerifyingKeyFile = Root + "/verifying-key/verification_key.json"
	// DatabaseURLFile contains the Postgres URL.
	DatabaseURLFile = Root + "/database/url"
	// FallbackRoutersFile lists the fallback routers.
	FallbackRoutersFile = Root + "/config/fallback-routers.yaml"
	// RouterURLFile and RouterAPIKeyFile contain the preferred swap router's URL and API key.
	RouterURLFile    = Root + "/router/url"
	RouterAPIKeyFile = Root + "/router/api-key"
	// APIKeysFile lists the API keys; a client has to present one of them.
	APIKeysFile = Root + "/api-keys/keys"
)

// TerminationLog is Kubernetes' default path of the file for a container's termination message.
const TerminationLog = "/dev/termination-log"

// EndpointURLFile is the file with the URL of the RPC endpoint with that name.
func EndpointURLFile(endpoint string) string { return path.Join(Root, "rpc", endpoint, "url") }

// FallbackRouterURLFile is the file with the URL of the fallback router with that name.
func FallbackRouterURLFile(router string) string {
	return path.Join(Root, "fallback-routers", router, "url")
}

// FallbackRouterAPIKeyFile is the file with the API key of the fallback router with that name.
func FallbackRouterAPIKeyFile(router string) string {
	return path.Join(Root, "fallback-routers", router, "api-key")
}

// PayerFile is the file with a fee payer's key. secret is the name of the Secret, and key is the
// name of the value in the Secret.
func PayerFile(secret, key string) string { return path.Join(Root, "payers", secret, key) }
