package keys

// isAdopted reports whether an earlier RelayPool of this name left the key: the key is older
// than this RelayPool.
func (d *decision) isAdopted(k *Key) bool {
	return k.Created.Before(d.Pool.CreationTimestamp.Time)
}
