package idset

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
)

// ErrDamaged means that a stored set of ids is missing or damaged, or belongs to another part.
var ErrDamaged = errors.New("the list of ids is damaged")

// Encode returns a set of ids as bytes. Equal sets give equal bytes, however they were built.
//
// The bytes hold the number of ids, and blocks of 128 ids, the last block with the rest: how
// many ids lie between the block's first id and the block before, the bits of a gap (one
// byte), and the gaps between the block's ids, as 64-bit words, all little endian. Numbers are
// varints.
func Encode(ids Set) []byte {
	var p packer
	for id := range ids.All() { // ids may come from blocks of other sets, so they are packed anew
		p.add(id)
	}
	data, last := binary.AppendUvarint(nil, uint64(ids.Len())), int64(-1) //nolint:gosec // a length is not negative
	for _, b := range p.done() {
		data = append(binary.AppendUvarint(data, uint64(b.first-last-1)), b.width) //nolint:gosec // ids ascend
		data, _ = binary.Append(data, binary.LittleEndian, b.gaps[:b.words()])     // numbers are written without errors
		last = b.last
	}
	return data
}

// Sum returns the SHA-256 in hex of an encoded set of ids, by which the set is named: see
// IDsName.
func Sum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Decode reads a set of ids from bytes that Encode returned. For any other bytes it returns
// ErrDamaged.
func Decode(data []byte) (Set, error) {
	p := packer{ids: Set{}}
	count, n := binary.Uvarint(data)
	rest, last := data[max(n, 0):], int64(-1)
	for count > 0 {
		skipped, n := binary.Uvarint(rest)
		if n <= 0 || n == len(rest) || rest[n] > 63 {
			return nil, ErrDamaged
		}
		b := block{first: last + 1 + int64(skipped), n: uint8(min(count, blockIDs)), width: rest[n]} //nolint:gosec // what is too large gives a smaller id
		b.gaps = make([]uint64, b.words()+2)
		taken, err := binary.Decode(rest[n+1:], binary.LittleEndian, b.gaps[:b.words()])
		if err != nil {
			return nil, ErrDamaged
		}
		for id := range b.all {
			if id <= last {
				return nil, ErrDamaged
			}
			p.add(id)
			last = id
		}
		rest = rest[n+1+taken:]
		count -= uint64(b.n)
	}
	ids := p.done()
	if !bytes.Equal(Encode(ids), data) {
		return nil, ErrDamaged
	}
	return ids, nil
}
