package rpc

import "bytes"

// skip reports whether the transaction is left out of the block, because nothing in it names the
// account. A skipped transaction of a version newer than knownVersion is counted, because the relay
// cannot decode it to make sure.
func (r *blockReader) skip() bool {
	version := versionOf(r.raw)
	if r.mayName(version) {
		return false
	}
	if version > knownVersion {
		r.UnknownVersions++
	}
	return true
}

// mayName reports whether the transaction may name the account. The transaction's own keys are in
// its bytes, and the addresses that it loads from lookup tables are in the meta. If the account
// appears elsewhere in the meta, such as in a log line, the only cost is a needless decoding. A
// transaction of version 0 may load addresses. So if its meta has no list of them, it may name the
// account.
func (r *blockReader) mayName(version int) bool {
	return bytes.Contains(r.raw, r.account) || bytes.Contains(r.meta, r.base58) ||
		(version == 0 && !bytes.Contains(r.meta, []byte(`"loadedAddresses"`)))
}
