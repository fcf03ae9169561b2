package config

import (
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gagliardetto/solana-go"
	"go.yaml.in/yaml/v3"

	"github.com/relaypool/relaypool/relay/commandline"
)

// maxSigners bounds the list of signers; see feepayer.MaxKeys.
const maxSigners = 100

// Signer is a fee payer whose key is in a key service. One of Vault, AWS and GCP is set.
type Signer struct {
	// Name identifies the signer in logs, metrics and /health.
	Name string
	// Address is the fee payer's address. The service's key must be that of the address.
	Address solana.PublicKey
	Vault   *VaultTransit
	AWS     *AWSKMS
	GCP     *GCPKMS
}

// VaultTransit is an ed25519 key of Vault's secrets engine Transit, or of OpenBao's.
type VaultTransit struct {
	URL, Namespace, Mount, Key string // an empty Mount is Vault's usual one, and so are the empty fields of the login
	// KeyVersion is the version of the key that the address belongs to, from 1.
	KeyVersion int
	// CAFile is the file of the authorities of Vault's certificate; empty for the system's.
	CAFile string
	// Either TokenFile is set, or KubernetesRole, with which the relay logs in by the token of its
	// service account, in JWTFile, at the auth method of KubernetesMount.
	TokenFile                                string
	KubernetesRole, KubernetesMount, JWTFile string
}

// AWSKMS is an ed25519 key of AWS Key Management Service.
type AWSKMS struct {
	// KeyID is the key's id, ARN or alias. Region may be empty if the environment says it.
	KeyID, Region string
	// Endpoint replaces the region's address of the service; empty for that.
	Endpoint string
	// CredentialsFile is a file of shared credentials. Empty takes what the environment has, such as
	// the identity of the pod's service account.
	CredentialsFile string
}

// GCPKMS is a version of an ed25519 key of Google Cloud Key Management Service.
type GCPKMS struct {
	// KeyVersion is projects/…/locations/…/keyRings/…/cryptoKeys/…/cryptoKeyVersions/….
	KeyVersion string
	// Endpoint and CredentialsFile are as those of AWSKMS.
	Endpoint, CredentialsFile string
}

// SignersFile has the flag of the list of signers, for every command that signs.
type SignersFile struct {
	FeePayerSignersFile string `env:"RELAYPOOL_FEE_PAYER_SIGNERS_FILE" placeholder:"FILE" group:"Fees" help:"YAML or JSON file with a list of fee payers whose keys stay in a key service. Each has a name, the address, and one of: vaultTransit (url, key, keyVersion, and tokenFile or kubernetesRole; perhaps mount, namespace, caFile, kubernetesMount, jwtFile), awsKMS (keyID; perhaps region, endpoint, credentialsFile) or gcpKMS (keyVersion; perhaps endpoint, credentialsFile). Empty for none."`
}

// LoadSigners reads the list. Its problems contain positions and lengths only, because somebody
// may have named the file of a key.
func (s SignersFile) LoadSigners() (signers []Signer, problems []error) {
	const flag = "fee-payer-signers-file"
	if s.FeePayerSignersFile == "" {
		return nil, nil
	}
	content, err := readFile(flag, s.FeePayerSignersFile, "list the signers in it, as relay serve --help says")
	if err != nil {
		return nil, []error{err}
	}
	items, err := parseList(content, "signers", maxSigners)
	if err != nil {
		return nil, []error{commandline.Problem(flag, "%w", err)}
	}
	for i, item := range items {
		p := signerParser{itemParser: itemParser{folder: filepath.Dir(s.FeePayerSignersFile), what: "signer"}}
		p.parse(item)
		if slices.ContainsFunc(signers, func(other Signer) bool { return other.Name == p.signer.Name && p.signer.Name != "" }) {
			p.fault("name is that of another signer: expected names that are all different")
		}
		if slices.ContainsFunc(signers, func(other Signer) bool { return other.Address == p.signer.Address && !p.signer.Address.IsZero() }) {
			p.fault("address is that of another signer: give each fee payer once")
		}
		for _, fault := range p.faults {
			problems = append(problems, commandline.Problem(flag, "signer %d of %d: %w", i+1, len(items), fault))
		}
		signers = append(signers, p.signer)
	}
	return signers, problems
}

// signerParser reads one item of the list of signers.
type signerParser struct {
	itemParser
	signer Signer
}

func (p *signerParser) parse(item *yaml.Node) {
	s := &p.signer
	p.requireFields("", item, []string{"name", "address"},
		field{"name", p.name}, field{"address", p.address},
		field{"vaultTransit", func(n *yaml.Node) { s.Vault = p.vaultTransit(n) }},
		field{"awsKMS", func(n *yaml.Node) { s.AWS = p.awsKMS(n) }},
		field{"gcpKMS", func(n *yaml.Node) { s.GCP = p.gcpKMS(n) }},
	)
	s.Name = p.itemName
	if services := count(s.Vault != nil, s.AWS != nil, s.GCP != nil); services != 1 && item.Kind == yaml.MappingNode {
		p.fault("%d key services are given: expected one of vaultTransit, awsKMS and gcpKMS", services)
	}
}

func count(conditions ...bool) (n int) {
	for _, c := range conditions {
		if c {
			n++
		}
	}
	return n
}

func (p *signerParser) address(n *yaml.Node) {
	key, err := solana.PublicKeyFromBase58(strings.TrimSpace(n.Value))
	if err != nil || key.IsZero() || !key.IsOnCurve() {
		p.fault("address of %d characters: expected the address of the service's ed25519 key, in base58", len(n.Value))
		return
	}
	p.signer.Address = key
}

func (p *signerParser) vaultTransit(n *yaml.Node) *VaultTransit {
	v := new(VaultTransit)
	p.requireFields("vaultTransit: ", n, []string{"url", "key", "keyVersion"},
		field{"url", func(n *yaml.Node) { v.URL = p.vaultURL(n) }},
		p.string("key", &v.Key), p.string("mount", &v.Mount), p.string("namespace", &v.Namespace), p.file("caFile", &v.CAFile),
		field{"keyVersion", func(n *yaml.Node) {
			var err error
			if v.KeyVersion, err = strconv.Atoi(n.Value); err != nil || v.KeyVersion < 1 {
				p.fault("vaultTransit: keyVersion: expected the number of the key's version that the address belongs to, 1 or more")
			}
		}},
		p.file("tokenFile", &v.TokenFile), p.string("kubernetesRole", &v.KubernetesRole),
		p.string("kubernetesMount", &v.KubernetesMount), p.file("jwtFile", &v.JWTFile))
	if (v.TokenFile == "") == (v.KubernetesRole == "") && n.Kind == yaml.MappingNode {
		p.fault("vaultTransit: expected either tokenFile or kubernetesRole")
	}
	return v
}

// vaultURL reads the URL of a Vault. Without TLS the token could be read on its way, so http is only
// for the same machine.
func (p *signerParser) vaultURL(n *yaml.Node) string {
	p.url(n)
	u, err := url.Parse(p.itemURL.Reveal())
	if err != nil || u.Scheme != "http" {
		return p.itemURL.Reveal()
	}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
		p.fault("vaultTransit: url begins with http://, and its host is not this machine: expected https://, because a token is sent to it")
	}
	return p.itemURL.Reveal()
}

func (p *signerParser) awsKMS(n *yaml.Node) *AWSKMS {
	a := new(AWSKMS)
	p.requireFields("awsKMS: ", n, []string{"keyID"},
		p.string("keyID", &a.KeyID), p.string("region", &a.Region), p.string("endpoint", &a.Endpoint), p.file("credentialsFile", &a.CredentialsFile))
	return a
}

func (p *signerParser) gcpKMS(n *yaml.Node) *GCPKMS {
	g := new(GCPKMS)
	p.requireFields("gcpKMS: ", n, []string{"keyVersion"},
		p.string("keyVersion", &g.KeyVersion), p.string("endpoint", &g.Endpoint), p.file("credentialsFile", &g.CredentialsFile))
	return g
}

// string is a field of text.
func (p *signerParser) string(key string, to *string) field {
	return field{key, func(n *yaml.Node) { *to, _ = p.text(key, n) }}
}

// file is a field of a path, which is relative to the list. The signer reads the file: Vault's token at
// each use, its authorities every 5 s, AWS's each minute, Google's once at the start.
func (p *signerParser) file(key string, to *string) field {
	return field{key, func(n *yaml.Node) {
		path, ok := p.text(key, n)
		if ok && !filepath.IsAbs(path) {
			path = filepath.Join(p.folder, path)
		}
		*to = path
	}}
}
