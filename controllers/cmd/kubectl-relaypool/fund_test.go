package main

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/mr-tron/base58"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/relay/commandline"
	"github.com/relaypool/relaypool/relay/keyfile"
	"github.com/relaypool/relaypool/relay/onchain"
)

const oneSOL = 1_000_000_000

func TestFundPrintsWhatIsMissing(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	pool := s.relayPool(nil)
	s.golden("fund", s.succeed("fund", "demo"))
	s.golden("fund-top-up", s.succeed("fund", "demo", "--top-up"))

	status := statusOfDemo()
	status.FeePayers[1].BalanceLamports = nil
	s.setStatus(pool, &status)
	if _, out, stderr := s.command("", "fund", "demo"); out != "" || !strings.Contains(stderr, "the balance of "+payerB+" is not known yet") {
		t.Errorf("received %q and %q, want that a balance is not known", out, stderr)
	}
	status.FeePayers = status.FeePayers[:1]
	s.setStatus(pool, &status)
	if out := s.succeed("fund", "demo"); out != "every fee payer in use holds its minimum of 0.05 SOL\n" {
		t.Errorf("received %q, want that all are funded", out)
	}
}

// localChain starts a chain whose slots advance by the clock.
func localChain(t *testing.T, slot time.Duration) (*localnet.Chain, string) {
	t.Helper()
	key, err := os.ReadFile("../../../relay/groth16/testdata/verification_key.json")
	noError(t, err)
	net, err := localnet.New(localnet.Options{VerifyingKey: key, SlotDuration: slot, Strangers: -1})
	noError(t, err)
	t.Cleanup(func() { noError(t, net.Close()) })
	url, err := net.Listen("127.0.0.1:0")
	noError(t, err)
	return net, url
}

// wallet makes a key file with lamports.
func wallet(t *testing.T, net *localnet.Chain, lamports uint64) (path string, private ed25519.PrivateKey) {
	t.Helper()
	seed := sha256.Sum256([]byte(t.Name()))
	private = ed25519.NewKeyFromSeed(seed[:])
	path = filepath.Join(t.TempDir(), "wallet.json")
	noError(t, os.WriteFile(path, keyfile.Format(private), 0o600))
	if lamports > 0 {
		noError(t, net.Fund(solana.PublicKeyFromBytes(private[ed25519.SeedSize:]), lamports))
		net.Finalize()
	}
	return path, private
}

// onLocalnet puts the RelayPool on the local chain.
func onLocalnet(p *v1alpha1.RelayPool) { p.Spec.Solana.Cluster = localnet.GenesisHash.String() }

func TestFundSendsWhatIsMissing(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.relayPool(onLocalnet)
	net, url := localChain(t, 20*time.Millisecond)
	path, private := wallet(t, net, 10*oneSOL)
	net.Start(t.Context())

	args := []string{"fund", "demo", "--from-key-file=" + path, "--rpc-url=" + url}
	code, out, stderr := s.command("n\n", args...)
	if code != commandline.ExitFailed || !strings.Contains(stderr, "Send 2 transfers of 4 SOL in all from "+keyfile.Address(private)) || !strings.Contains(stderr, "nothing was sent") || net.Stats()["sendTransaction"] > 0 {
		t.Errorf("after the answer no: exit code %d, stdout %q, stderr %q; want 1 and no transaction", code, out, stderr)
	}
	shown := out + stderr
	code, out, stderr = s.command("y\n", args...)
	signatures := regexp.MustCompile(`(?m)^[1-9A-HJ-NP-Za-km-z]{86,88}  2 SOL to \w+: confirmed$`).FindAllString(out, -1)
	if code != 0 || len(signatures) != 2 {
		t.Fatalf("exit code %d, stdout %q, stderr %q; want 0 and two confirmed transfers", code, out, stderr)
	}
	shown += out + stderr
	out = s.succeed(append(args, "--yes")...)
	if !strings.HasPrefix(out, "every fee payer in use holds its minimum") {
		t.Errorf("the second run printed %q, want that nothing is missing", out)
	}
	shown += out
	for name, form := range map[string]string{"base58": base58.Encode(private), "JSON": strings.TrimSpace(string(keyfile.Format(private))), "base64": base64.StdEncoding.EncodeToString(private)} {
		if strings.Contains(shown, form) {
			t.Errorf("the output has the key in %s", name)
		}
	}
}

func TestFundRefusesToSend(t *testing.T) {
	t.Parallel()
	net, url := localChain(t, time.Second)
	rich, _ := wallet(t, net, 10*oneSOL)
	broken := filepath.Join(t.TempDir(), "broken.json")
	canary := "c4n4ryc4n4ry"
	noError(t, os.WriteFile(broken, []byte("["+canary), 0o600))
	for name, tt := range map[string]struct {
		change func(*v1alpha1.RelayPool)
		args   []string
		code   int
		want   string
	}{
		"an endpoint of another chain": {nil, []string{"--rpc-url=" + url, "--from-key-file=" + rich, "--yes"}, commandline.ExitUsage, "the endpoint serves the chain with genesis hash"},
		"no endpoint":                  {onLocalnet, []string{"--from-key-file=" + rich, "--yes"}, commandline.ExitUsage, "expected --rpc-url"},
		"two endpoints":                {onLocalnet, []string{"--rpc-url=" + url, "--rpc-url-file=" + rich}, commandline.ExitUsage, "expected one of the two"},
		"a file that is no key":        {onLocalnet, []string{"--rpc-url=" + url, "--from-key-file=" + broken, "--yes"}, commandline.ExitUsage, "--from-key-file: key of 13 characters"},
		"no answer to the question":    {onLocalnet, []string{"--rpc-url=" + url, "--from-key-file=" + rich}, commandline.ExitUsage, "--yes sends without a question"},
		"an account that holds too little": {func(p *v1alpha1.RelayPool) {
			onLocalnet(p)
			p.Spec.FeePayers.TargetBalanceLamports = new(int64(100 * oneSOL))
		}, []string{"--rpc-url=" + url, "--from-key-file=" + rich, "--yes"}, commandline.ExitFailed, "holds 10 SOL: expected 200.00001012 SOL for the transfers and fees"},
		"a RelayPool that shows no fee payers": {func(p *v1alpha1.RelayPool) { p.Status.FeePayers = nil }, nil, commandline.ExitFailed, "shows no fee payers yet"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t)
			s.relayPool(tt.change)
			code, _, stderr := s.command("", append([]string{"fund", "demo"}, tt.args...)...)
			if code != tt.code || !strings.Contains(stderr, tt.want) || strings.Contains(stderr, canary) {
				t.Errorf("exit code %d, stderr %q; want %d and %q", code, stderr, tt.code, tt.want)
			}
			if n := net.Stats()["sendTransaction"]; n > 0 {
				t.Errorf("%d transactions were sent, want none", n)
			}
		})
	}
}

// A transfer whose outcome is not known must not be sent a second time by a person who thinks that
// it failed.
func TestFundSaysThatATransferMayStillLand(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.relayPool(onLocalnet)
	net, url := localChain(t, time.Second)
	path, _ := wallet(t, net, 10*oneSOL) // and the chain stands still
	code, out, stderr := s.command("", "fund", "demo", "--from-key-file="+path, "--rpc-url="+url, "--yes", "--timeout=200ms")
	if code != commandline.ExitFailed || !strings.Contains(stderr, errUnresolved.Error()) || strings.Count(out, "not confirmed") != 1 {
		t.Errorf("exit code %d, stdout %q, stderr %q; want 1, one transfer and that it may land", code, out, stderr)
	}
	net.Advance(localnet.DefaultFinalizeAfter + 200)
	code, out, stderr = s.command("", "fund", "demo", "--rpc-url="+url)
	if code != 0 || strings.Count(out, "solana transfer") != 1 {
		t.Errorf("afterwards: exit code %d, stdout %q, stderr %q; want that one payer lacks lamports", code, out, stderr)
	}
}

func TestSOLIsExact(t *testing.T) {
	t.Parallel()
	for lamports, want := range map[uint64]string{0: "0", 1: "0.000000001", oneSOL: "1", 1_500_000_000: "1.5", 18_446_744_073_709_551_615: "18446744073.709551615"} {
		if got := onchain.SOL(lamports); got != want {
			t.Errorf("%d lamports are %s SOL, want %s", lamports, got, want)
		}
	}
	if got := fmt.Sprint(balancesWanted(&v1alpha1.FeePayers{MinimumBalanceLamports: new(int64(3 * oneSOL))})); got != "3000000000 3000000000" {
		t.Errorf("a minimum above the default target gives %s, want twice the minimum", got)
	}
}
