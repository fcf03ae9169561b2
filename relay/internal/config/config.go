// Package config holds all settings of a relay: flags and environment variables in one
// struct, validated completely at start, with secrets read only from files.
//
// The report of a problem has the flag's name and the length or kind of the received value,
// never the value itself. Somebody who confuses two settings must not find a secret in the log.
package config

import (
	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/commandline"
	"github.com/relaypool/relaypool/relay/groth16"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// Database is the location of the relays' Postgres.
type Database struct {
	URLFile        string `env:"RELAYPOOL_DATABASE_URL_FILE" placeholder:"FILE" group:"Database" help:"Required. File of the Postgres URL, postgres://user:password@host:port/name."`
	CAFile         string `env:"RELAYPOOL_DATABASE_CA_FILE" placeholder:"FILE" group:"Database" help:"PEM file of the only certificate authorities that the database's certificate may come from. Every connection then uses TLS, and the certificate has to name the host in the URL, whatever the URL's sslmode is. Read for each new connection. Empty leaves TLS to the URL."`
	ClientCertFile string `env:"RELAYPOOL_DATABASE_CLIENT_CERT_FILE" placeholder:"FILE" group:"Database" help:"PEM file of the certificate with which the relay identifies itself to the database. Every connection then uses TLS, as with a CA file; without one the system's authorities are trusted. Read for each new connection. Empty for none."`
	ClientKeyFile  string `env:"RELAYPOOL_DATABASE_CLIENT_KEY_FILE" placeholder:"FILE" group:"Database" help:"PEM file of that certificate's private key, without a password. Required with the certificate."`
	MaxConnections int32  `default:"40" env:"RELAYPOOL_DATABASE_MAX_CONNECTIONS" placeholder:"NUMBER" group:"Database" help:"Most connections to the database, at least 4."`
}

// RPC has the endpoints through which the relay reaches the chain: either one URL or a file
// with several.
type RPC struct {
	// URL is a Secret, because the path of an endpoint often contains a key.
	URL     Secret `env:"RELAYPOOL_RPC_URL" placeholder:"URL" group:"Chain" help:"Solana JSON-RPC endpoint, http or https, when its URL holds no credentials. It has every role. Required, here or in a file."`
	URLFile string `env:"RELAYPOOL_RPC_URL_FILE" placeholder:"FILE" group:"Chain" help:"File of the endpoint's URL, when that holds credentials."`
	CAFile  string `env:"RELAYPOOL_RPC_CA_FILE" placeholder:"FILE" group:"Chain" help:"PEM file of the only certificate authorities that the endpoint's certificate may come from, for calls and subscriptions. Read again when it changes. Empty for the system's."`
	// loadList reads EndpointsFile.
	EndpointsFile string `env:"RELAYPOOL_RPC_ENDPOINTS_FILE" placeholder:"FILE" group:"Chain" help:"YAML or JSON file of several endpoints, instead of one URL: a list, each with name, url or urlFile, and optionally websocketURL (none for no subscriptions), caFile (PEM file of the only certificate authorities to trust), roles (any of read, submit, archive; all when left out), requestsPerSecond (0 for no limit) and tip (accounts, minLamports, maxLamports, use: urgent or always), which makes it a lane."`
}

// Logging configures the log.
type Logging struct {
	Level  string `default:"info" env:"RELAYPOOL_LOG_LEVEL" placeholder:"LEVEL" group:"Log" help:"Least level that is logged: debug, info, warn or error."`
	Format string `default:"auto" env:"RELAYPOOL_LOG_FORMAT" placeholder:"FORMAT" group:"Log" help:"json, text, or auto: text on a terminal, else json."`
}

// Config is a valid Serve, with the content of the files that its flags name.
type Config struct {
	Serve

	DatabaseURL DatabaseURL
	// Endpoints have different names. At least one has RoleRead, and at least one has
	// RoleSubmit.
	Endpoints []Endpoint
	Profile   *shieldpool.Profile
	// Genesis is the zero hash when any chain is accepted.
	Genesis solana.Hash
	Key     *groth16.Key
	// Signers are the fee payers whose keys are in key services.
	Signers []Signer
	// Swaps is nil when swaps are off.
	Swaps *Swaps
	// LookupTable is zero for none.
	LookupTable         solana.PublicKey
	CompliancePublicKey [32]byte
	// APIKeys are the accepted API keys at the start. If there are none, clients need no key.
	APIKeys []APIKey
}

// Admin has the flags of commands that need only the database.
type Admin struct {
	Database `embed:"" prefix:"database-"`
	Logging  `embed:"" prefix:"log-"`

	// EarlierProblems are problems that were found before Load. Load's error includes them.
	EarlierProblems []error `kong:"-"`
}

// Load checks the flags and reads the database's URL from its file. Its error
// is commandline.Problems.
func (a Admin) Load() (DatabaseURL, error) {
	problems := append(commandline.Problems{}, a.EarlierProblems...)
	database, found := a.Database.Load()
	problems = append(problems, found...)
	problems = append(problems, a.Logging.check()...)
	if len(problems) > 0 {
		return DatabaseURL{}, problems
	}
	return database, nil
}
