package shieldpool

import (
	"encoding/binary"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"
)

func TestParseLookupTable(t *testing.T) {
	t.Parallel()
	address, addresses := solana.PublicKey{1}, solana.PublicKeySlice{{2}, {3}, {4}}
	data := make([]byte, 56)
	binary.LittleEndian.PutUint32(data, 1)
	binary.LittleEndian.PutUint64(data[4:], ^uint64(0))
	for _, key := range addresses {
		data = append(data, key[:]...)
	}
	got, active, err := ParseLookupTable(address, data)
	if diff := cmp.Diff(LookupTable{Address: address, Addresses: addresses}, got); diff != "" || !active || err != nil {
		t.Errorf("active %t, error %v; table (-want +got):\n%s", active, err, diff)
	}
	if got, active, err := ParseLookupTable(address, data[:56]); len(got.Addresses) != 0 || !active || err != nil {
		t.Errorf("an empty table is %+v, active %t, error %v", got, active, err)
	}
	binary.LittleEndian.PutUint64(data[4:], 12345)
	if _, active, err := ParseLookupTable(address, data); active || err != nil {
		t.Errorf("a table in deactivation is active: %t, error %v", active, err)
	}
	for name, bad := range map[string][]byte{
		"cut off in its header": data[:55], "cut off in an address": data[:56+31], "empty": nil,
		"not initialised": append([]byte{0}, data[1:]...),
	} {
		if _, _, err := ParseLookupTable(address, bad); err == nil {
			t.Errorf("a table that is %s is read", name)
		}
	}
}
