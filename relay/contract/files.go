package contract

import "path"

// Root is the folder in a pod below which everything is that the operator
// mounts for the relay.
const Root = "/etc/relaypool"

// Files that the operator mounts.
const (
	// EndpointsFile lists the RPC endpoints.
	EndpointsFile = Root + "/config/endpoints.yaml"
	// SignInMessagesFile lists the texts whose signature admits a viewing key.
	SignInMessagesFile = Root + "/config/sign-in-messages.yaml"
	// ProfileFile is a program profile of the user's own.
	ProfileFile = Root + "/profile/profile.yaml"
	// VerifyingKeyFile is snarkjs' verification_key.json.
	VerifyingKeyFile = Root + "/verifying-key/verification_key.json"
	// DatabaseURLFile holds the Postgres URL.
	DatabaseURLFile = Root + "/database/url"
	// RouterURLFile and RouterAPIKeyFile hold the swap router's.
	RouterURLFile    = Root + "/router/url"
	RouterAPIKeyFile = Root + "/router/api-key"
	// APIKeysFile lists the keys of which clients have to present one.
	APIKeysFile = Root + "/api-keys/keys"
)

// TerminationLog is where a container leaves its last words for the
// orchestrator, by Kubernetes' default.
const TerminationLog = "/dev/termination-log"

// EndpointURLFile holds the URL of the RPC endpoint with that name.
func EndpointURLFile(endpoint string) string { return path.Join(Root, "rpc", endpoint, "url") }

// PayerFile holds a fee payer's key, by the names of the Secret and of the value in it.
func PayerFile(secret, key string) string { return path.Join(Root, "payers", secret, key) }
