package main

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/relay/commandline"
	"github.com/relaypool/relaypool/relay/internal/feepayer"
	"github.com/relaypool/relaypool/relay/internal/pgtest"
)

// sweepWorld is a chain whose slots a test advances, a database, and key files.
func sweepWorld(t *testing.T, keys int) (net *localnet.Chain, rpc, database string, files []string) {
	t.Helper()
	vk, err := os.ReadFile(verifyingKey)
	noError(t, err)
	net, err = localnet.New(localnet.Options{VerifyingKey: vk})
	noError(t, err)
	t.Cleanup(func() { noError(t, net.Close()) })
	rpc, err = net.Listen("127.0.0.1:0")
	noError(t, err)
	for i := range keys {
		path := filepath.Join(t.TempDir(), fmt.Sprint(i))
		succeed(t, "", "keygen", path)
		files = append(files, path)
	}
	return net, rpc, pgtest.URL(t), files
}

func address(t *testing.T, path string) solana.PublicKey {
	t.Helper()
	key, err := feepayer.ReadFile(path)
	noError(t, err)
	return key.PublicKey()
}

func TestSweepWritesTerminationMessage(t *testing.T) {
	t.Parallel()
	net, rpc, database, files := sweepWorld(t, 2)
	old, urlFile, messageFile := files[0], file(t, database), filepath.Join(t.TempDir(), "message")
	noError(t, net.Fund(address(t, old), sol/10))
	net.Finalize()
	sweep := func(args ...string) (code int, output string) {
		t.Helper()
		code, out, stderr := command(t, "", append(append([]string{"sweep"}, args...), "--database-url-file="+urlFile, "--termination-log="+messageFile, "--log-level=warn")...)
		return code, out + stderr
	}
	chainFlags, all := []string{"--rpc-url=" + rpc, "--genesis-hash=" + localnet.GenesisHash.String()}, []string{"all", "--from=" + old, "--to=" + files[1]}
	wantMessage := func(want string) {
		t.Helper()
		if got := readFile(t, messageFile); !strings.Contains(got, want) || strings.Contains(got, "\n") {
			t.Errorf("the termination message is %q, want %q in it", got, want)
		}
	}
	if code, output := sweep(append(all, chainFlags...)...); code != commandline.ExitFailed || !strings.Contains(output, "relay migrate") {
		t.Errorf("without a schema: exit code %d, want 1 and the command that makes the schema: %s", code, output)
	}
	wantMessage("all is not done: the database's schema is older")
	succeed(t, "", "migrate", "--database-url-file="+urlFile, "--log-level=warn")

	code, output := sweep(append(all, "--rpc-url="+rpc, "--genesis-hash="+solana.Hash{7}.String())...)
	if code != commandline.ExitUsage || !strings.Contains(output, "another chain") || net.Stats()["sendTransaction"] > 0 {
		t.Errorf("on another chain: exit code %d, want 2 and no sent transaction: %s", code, output)
	}
	wantMessage("another chain")
	fund := append([]string{"fund", "--from=" + old, "--to=" + address(t, files[1]).String(), fmt.Sprintf("--target=%d", sol), fmt.Sprintf("--keep=%d", sol/10)}, chainFlags...)
	if code, output := sweep(fund...); code != exitShort || !strings.Contains(output, address(t, old).String()) {
		t.Errorf("with too little: exit code %d, want %d and the address: %s", code, exitShort, output)
	}
	wantMessage("not enough lamports")
	if code, output := sweep(append(all, "--rpc-url=http://127.0.0.1:1", chainFlags[1], "--timeout=50ms")...); code != exitUnfinished {
		t.Errorf("without a chain: exit code %d, want %d: %s", code, exitUnfinished, output)
	}
	wantMessage("run it again")
	if calls := net.Stats(); calls["sendTransaction"] > 0 || calls["simulateTransaction"] > 0 {
		t.Errorf("calls %v, want no transaction sent or simulated", calls)
	}
	if code, output := sweep(append([]string{"drain", "--from=" + old}, chainFlags...)...); code != 0 {
		t.Errorf("with nothing to wait for: exit code %d, want 0: %s", code, output)
	}
	wantMessage("drain is done")
}

func TestSweepFlagErrorsRepeatNoSecret(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	key, err := feepayer.Generate(rand.Reader)
	noError(t, err)
	good := filepath.Join(folder, "good")
	noError(t, key.WriteFile(good))
	database := file(t, "postgres://relay@127.0.0.1:1/relay")
	secret := "4wBqpZM9xaSheZzJSMawUKKwhdpChKbZ5eu5ky4Vigw" + canary
	off, _, err := solana.FindProgramAddress([][]byte{{1}}, solana.SystemProgramID)
	noError(t, err)
	self := key.PublicKey().String()
	empty := t.TempDir()
	to := "--to=" + solana.NewWallet().PublicKey().String()
	genesis := "--genesis-hash=" + localnet.GenesisHash.String()
	tests := map[string]struct {
		args []string
		want string
	}{
		"without a genesis hash":      {[]string{"all", "--from=" + good, to}, "--genesis-hash ($RELAYPOOL_GENESIS_HASH): is missing"},
		"a key in place of its file":  {[]string{"all", "--from=" + secret, to, genesis}, "--from: file 1 of 1 cannot be read"},
		"a key's JSON array":          {[]string{"all", "--from=[1,2," + canary + "]", to, genesis}, "starts like a JSON array"},
		"a file that is no key":       {[]string{"all", "--from=" + file(t, secret), to, genesis}, "--from:"},
		"an empty file":               {[]string{"all", "--from=" + file(t, " "), to, genesis}, "is empty"},
		"an empty directory":          {[]string{"all", "--from=" + empty, to, genesis}, "has no file"},
		"a secret key as destination": {[]string{"all", "--from=" + good, "--to=" + secret, genesis}, "--to: expected an address in base58 or the file of a key, received"},
		"an address without a key":    {[]string{"all", "--from=" + good, "--to=" + off.String(), genesis}, "nobody could spend"},
		"from a key to itself":        {[]string{"all", "--from=" + good, "--to=" + self, genesis}, "is among --from too"},
		"to a directory of two":       {[]string{"all", "--from=" + good, "--to=" + twoKeys(t), genesis}, "expected one address"},
		"the same new payer twice":    {[]string{"fund", "--from=" + good, to, to, "--target=1000000000", genesis}, "is given twice"},
		"a target below the minimum":  {[]string{"fund", "--from=" + good, to, "--target=1", genesis}, "--target: expected at least the 890880 lamports"},
		"no target":                   {[]string{"fund", "--from=" + good, to, genesis}, "--target"},
		"a zero timeout":              {[]string{"drain", "--from=" + self, genesis, "--timeout=0s"}, "--timeout: expected more than 0s"},
		"a floor above the cap":       {[]string{"drain", "--from=" + self, genesis, "--priority-fee-floor=9", "--priority-fee-cap=8"}, "--priority-fee-floor"},
		"an unknown step":             {[]string{canary}, "expected a command"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			messageFile := filepath.Join(t.TempDir(), "message")
			args := append([]string{"sweep"}, test.args...)
			if len(test.args) > 1 {
				args = append(args, "--database-url-file="+database, "--rpc-url=http://127.0.0.1:1", "--termination-log="+messageFile)
			}
			code, out, stderr := command(t, "", args...)
			if code != commandline.ExitUsage || !strings.Contains(stderr, test.want) {
				t.Errorf("exit code %d and %q, want %d and %q", code, stderr, commandline.ExitUsage, test.want)
			}
			message, _ := os.ReadFile(messageFile) // not written if the flags do not parse
			if strings.Contains(out+stderr+string(message), canary) {
				t.Errorf("it repeats a secret: %s%s%s", out, stderr, message)
			}
		})
	}
}

func twoKeys(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for _, name := range []string{"a", "b"} {
		succeed(t, "", "keygen", filepath.Join(folder, name))
	}
	return folder
}

func TestSweepThatTimesOutIsUnfinished(t *testing.T) {
	t.Parallel()
	net, rpc, database, files := sweepWorld(t, 2)
	noError(t, net.Fund(address(t, files[0]), sol))
	net.Finalize() // from here on no slot passes, so nothing is ever finalized
	urlFile := file(t, database)
	succeed(t, "", "migrate", "--database-url-file="+urlFile, "--log-level=warn")
	code, _, stderr := command(t, "", "sweep", "all", "--from="+files[0], "--to="+files[1], "--database-url-file="+urlFile, "--rpc-url="+rpc,
		"--genesis-hash="+localnet.GenesisHash.String(), "--timeout=5s", "--termination-log="+filepath.Join(t.TempDir(), "message"), "--log-level=warn")
	// The time may be over in the middle of a request for the transaction's status.
	if code != exitUnfinished || !strings.Contains(stderr, "the time is over while waiting for transactions to ") && !strings.Contains(stderr, "the time is over while waiting for the chain, to tell of 1 transactions") {
		t.Errorf("exit code %d and %q, want %d and a sent transaction that is not finalized", code, stderr, exitUnfinished)
	}
}
