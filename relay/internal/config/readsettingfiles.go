package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/commandline"
	"github.com/relaypool/relaypool/relay/groth16"
	"github.com/relaypool/relaypool/relay/internal/viewingkey"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// readFile reads the file that a required flag names. Its errors omit the path. If somebody
// gives the content instead of the path, a secret must not get into the log.
func readFile(flag, path, advice string) ([]byte, error) {
	if path == "" {
		return nil, commandline.Problem(flag, "is missing: %s", advice)
	}
	content, err := readContent(path)
	if err != nil {
		return nil, commandline.Problem(flag, "the file that it names %w", err)
	}
	if content == "" {
		return nil, commandline.Problem(flag, "the file that it names is empty: %s", advice)
	}
	return []byte(content), nil
}

// readContent reads a file without the white space around its content. Its errors
// continue a sentence that begins with "the file", and do not name the path.
func readContent(path string) (string, error) {
	content, err := os.ReadFile(path)
	var fault *fs.PathError
	switch {
	case errors.As(err, &fault):
		return "", fmt.Errorf("cannot be read: %w; it takes a path, not the content", fault.Err)
	case err != nil:
		return "", errors.New("cannot be read; it takes a path, not the content")
	}
	return strings.TrimSpace(string(content)), nil
}

func (s Serve) genesis() (solana.Hash, error) {
	if s.GenesisHash == "" {
		return solana.Hash{}, nil
	}
	h, err := solana.HashFromBase58(s.GenesisHash)
	if err != nil {
		return solana.Hash{}, commandline.Problem("genesis-hash", "expected 32 bytes in base58, received %d characters that are not", len(s.GenesisHash))
	}
	return h, nil
}

func (s Serve) profile() (p *shieldpool.Profile, problems []error) {
	addProblem := func(flag, format string, args ...any) {
		problems = append(problems, commandline.Problem(flag, format, args...))
	}
	p, problems = s.baseProfile()
	if len(problems) > 0 {
		p = &shieldpool.Profile{} // so that the other flags are checked too
	}
	var err error
	if s.ProgramID != "" {
		if p.ProgramID, err = solana.PublicKeyFromBase58(s.ProgramID); err != nil {
			addProblem("program-id", "expected 32 bytes in base58, received %d characters that are not", len(s.ProgramID))
		}
	}
	if s.RootHistorySize != 0 {
		if s.RootHistorySize < shieldpool.MinRootHistory || s.RootHistorySize > shieldpool.MaxRootHistory {
			addProblem("root-history-size", "expected %d to %d roots, or 0 for the profile's, received %d", shieldpool.MinRootHistory, shieldpool.MaxRootHistory, s.RootHistorySize)
		}
		p.RootHistory = s.RootHistorySize
	}
	if len(s.Mint) > 0 {
		if p.Mints, err = shieldpool.ParseMints(s.Mint); err != nil {
			addProblem("mint", "%w", err)
		}
	}
	// The flag allows off-curve recipients. Without the flag, the profile decides.
	p.AllowOffCurveRecipient = p.AllowOffCurveRecipient || s.AllowOffCurveRecipient
	messages, err := s.signInMessages()
	switch {
	case err != nil:
		problems = append(problems, err)
	case len(messages) > 0:
		p.SignInMessages = messages
	}
	return p, problems
}

// baseProfile returns the profile from the file, or the built-in profile. Other flags have not
// changed it yet.
func (s Serve) baseProfile() (*shieldpool.Profile, []error) {
	const flag = "profile-file"
	if s.ProfileFile == "" {
		p, err := shieldpool.BuiltIn(s.Profile)
		if err != nil {
			return nil, []error{commandline.Problem("profile", "expected shield-pool-v1 or development, received another value of %d characters", len(s.Profile))}
		}
		return p, nil
	}
	content, err := readFile(flag, s.ProfileFile, "write the profile to it, base first")
	if err != nil {
		return nil, []error{err}
	}
	p, err := shieldpool.ParseProfile(content)
	var found shieldpool.ProfileProblems
	switch {
	case errors.As(err, &found):
		problems := make([]error, len(found))
		for i, err := range found {
			problems[i] = commandline.Problem(flag, "%w", err)
		}
		return nil, problems
	case err != nil:
		return nil, []error{commandline.Problem(flag, "%w", err)}
	}
	return p, nil
}

func verifyingKey(path string) (*groth16.Key, error) {
	const flag = "verifying-key"
	content, err := readFile(flag, path, "name the file of snarkjs' verification_key.json for the pool's circuit")
	if err != nil {
		return nil, err
	}
	k, err := groth16.ParseKey(content)
	if err != nil {
		return nil, commandline.Problem(flag, "%w", err)
	}
	if k.NPublic() != shieldpool.SignalCount {
		return nil, commandline.Problem(flag, "the key has %d public signals, the pool's circuit has %d: name the key of that circuit", k.NPublic(), shieldpool.SignalCount)
	}
	return k, nil
}

func (s Serve) complianceKey() (key [32]byte, err error) {
	flag, text := "compliance-public-key", s.CompliancePublicKey
	switch {
	case text != "" && s.CompliancePublicKeyFile != "":
		return key, commandline.Problem(flag, "is set, and so is %s: give one", commandline.Setting("compliance-public-key-file"))
	case text == "" && s.CompliancePublicKeyFile == "":
		return key, commandline.Problem(flag, "is missing: make a key pair with relay compliance keygen on the compliance officer's own machine, and give the public key, or name its file with %s", commandline.Setting("compliance-public-key-file"))
	case text == "":
		flag = "compliance-public-key-file"
		content, err := readFile(flag, s.CompliancePublicKeyFile, "write the public key that relay compliance keygen printed to it")
		if err != nil {
			return key, err
		}
		text = strings.TrimSpace(string(content))
	}
	if key, err = viewingkey.ParsePublicKey(text); err != nil {
		return key, commandline.Problem(flag, "%w", err)
	}
	return key, nil
}
