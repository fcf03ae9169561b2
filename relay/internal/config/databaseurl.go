package config

import (
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/relaypool/relaypool/relay/cafile"
	"github.com/relaypool/relaypool/relay/commandline"
)

// DatabaseURL is the secret URL of the database, with the files that secure its connections.
type DatabaseURL struct {
	Secret
	// CAFile has the authorities of the database's certificate; empty for none. ClientCertFile and
	// ClientKeyFile have the relay's own certificate and its key; both or none are empty.
	CAFile, ClientCertFile, ClientKeyFile string
}

// Load reads the database's URL from its file, and checks the files that secure its connections,
// which are read again for each connection. No error contains any part of the URL.
func (d Database) Load() (database DatabaseURL, problems []error) {
	url, err := d.loadURL()
	if err != nil {
		problems = append(problems, err)
	}
	return DatabaseURL{url, d.CAFile, d.ClientCertFile, d.ClientKeyFile}, append(problems, d.checkFiles()...)
}

func (d Database) checkFiles() (problems []error) {
	if d.CAFile != "" {
		if _, err := cafile.Read(d.CAFile); err != nil {
			problems = append(problems, commandline.Problem("database-ca-file", "%w", err))
		}
	}
	const flag = "database-client-cert-file"
	switch {
	case (d.ClientCertFile == "") != (d.ClientKeyFile == ""):
		problems = append(problems, commandline.Problem(flag, "only one of this setting and %s is set: give both, or none", commandline.Setting("database-client-key-file")))
	case d.ClientCertFile != "":
		if _, err := cafile.ClientCertificate(d.ClientCertFile, d.ClientKeyFile); err != nil {
			problems = append(problems, commandline.Problem(flag, "%w", err))
		}
	}
	return problems
}

func (d Database) loadURL() (Secret, error) {
	const flag = "database-url-file"
	content, err := readFile(flag, d.URLFile, "write the database's URL to a file of mode 0600 and name it")
	if err != nil {
		return Secret{}, err
	}
	url := strings.TrimSpace(string(content))
	if _, err := pgconn.ParseConfig(url); err != nil { // the parser's error can hold the password
		return Secret{}, commandline.Problem(flag, "its content of %d bytes is not a Postgres URL: expected postgres://user:password@host:port/name", len(url))
	}
	return NewSecret(url), nil
}
