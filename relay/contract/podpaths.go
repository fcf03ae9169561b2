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

// EnvTemporaryFolder is the variable with the folder for temporary files, and TemporaryFolder is that
// folder in a pod. The relay stores the list of commitments there, as it is sent.
const (
	EnvTemporaryFolder = "TMPDIR"
	TemporaryFolder    = "/var/cache/relaypool"
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

// SignersFile lists the fee payers whose keys are in key services.
const SignersFile = Root + "/config/signers.yaml"

// SignerTokenFile is the file with the token of the signer with that name.
func SignerTokenFile(signer string) string { return path.Join(Root, "signers", signer, "token") }

// SignerJWTFile is the file with the token of the pod's service account for the signer's service.
func SignerJWTFile(signer string) string { return path.Join(Root, "signers", signer, "jwt") }

// SignerCAFile is the file with the authorities of the certificate of the signer's service.
func SignerCAFile(signer string) string { return path.Join(Root, "signers", signer, "ca.crt") }

// SignerCredentialsFile is the file with the credentials for the signer's service.
func SignerCredentialsFile(signer string) string {
	return path.Join(Root, "signers", signer, "credentials")
}

// PayerFile is the file with a fee payer's key. secret is the name of the Secret, and key is the
// name of the value in the Secret.
func PayerFile(secret, key string) string { return path.Join(Root, "payers", secret, key) }

// Files of private certificate authorities. Each may come from another Secret than the URL that
// it belongs to, so none is in the folder of a URL.
const (
	// DatabaseCAFile has the authorities of the database's certificate.
	DatabaseCAFile = Root + "/database-tls/ca.crt"
	// DatabaseClientCertFile and DatabaseClientKeyFile identify the relay to the database.
	DatabaseClientCertFile = Root + "/database-tls/tls.crt"
	DatabaseClientKeyFile  = Root + "/database-tls/tls.key"
	// RouterCAFile has the authorities of the preferred swap router's certificate.
	RouterCAFile = Root + "/router-ca/ca.crt"
)

// EndpointCAFile is the file with the authorities of the certificate of the RPC endpoint with that
// name.
func EndpointCAFile(endpoint string) string { return path.Join(Root, "rpc-ca", endpoint, "ca.crt") }

// FallbackRouterCAFile is the file with the authorities of the certificate of the fallback router
// with that name.
func FallbackRouterCAFile(router string) string {
	return path.Join(Root, "fallback-router-ca", router, "ca.crt")
}
