package load

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
)

// ErrIDs means that a set of ids is missing, damaged or of another part.
var ErrIDs = errors.New("the set of ids is damaged")

// EncodeIDs returns a set of ids as bytes. Equal sets give equal bytes, however they were built.
//
// They are the number of ids and blocks of 128 of them, the last one with what is left: how
// many ids lie between its first one and the block before, the bits of a gap (one byte), and
// the gaps between its ids, as 64-bit words, all little endian. Numbers are varints.
func EncodeIDs(ids IDs) []byte {
	var p packer
	for id := range ids.All() { // blocks may be of other sets
		p.add(id)
	}
	data, last := binary.AppendUvarint(nil, uint64(ids.Len())), int64(-1) //nolint:gosec // it is not negative
	for _, b := range p.done() {
		data = append(binary.AppendUvarint(data, uint64(b.first-last-1)), b.width) //nolint:gosec // they ascend
		data, _ = binary.Append(data, binary.LittleEndian, b.gaps[:b.words()])     // numbers are written without errors
		last = b.last
	}
	return data
}

// SumIDs returns the checksum that names a set of ids, see IDsName.
func SumIDs(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// DecodeIDs reads a set of ids. It returns ErrIDs if data is not what EncodeIDs makes of a set.
func DecodeIDs(data []byte) (IDs, error) {
	p := packer{ids: IDs{}}
	count, n := binary.Uvarint(data)
	rest, last := data[max(n, 0):], int64(-1)
	for count > 0 {
		skipped, n := binary.Uvarint(rest)
		if n <= 0 || n == len(rest) || rest[n] > 63 {
			return nil, ErrIDs
		}
		b := block{first: last + 1 + int64(skipped), n: uint8(min(count, blockIDs)), width: rest[n]} //nolint:gosec // what is too large gives a smaller id
		b.gaps = make([]uint64, b.words()+2)
		taken, err := binary.Decode(rest[n+1:], binary.LittleEndian, b.gaps[:b.words()])
		if err != nil {
			return nil, ErrIDs
		}
		for id := range b.all {
			if id <= last {
				return nil, ErrIDs
			}
			p.add(id)
			last = id
		}
		rest = rest[n+1+taken:]
		count -= uint64(b.n)
	}
	ids := p.done()
	if !bytes.Equal(EncodeIDs(ids), data) {
		return nil, ErrIDs
	}
	return ids, nil
}

// PartIDs reads the set of the ids of a part that has rows. The error wraps ErrIDs if there
// is no set, or if it belongs to another part. exploded tells that rows are the elements of
// a list, of which a result may have any number.
func PartIDs(ctx context.Context, s Store, p Part, exploded bool) (IDs, error) {
	if p.IDs == "" {
		return nil, fmt.Errorf("%w: there is none", ErrIDs)
	}
	data, _, err := s.Get(ctx, IDsName(p.IDs))
	if errors.Is(err, ErrNotExist) {
		return nil, fmt.Errorf("%w: there is none", ErrIDs)
	}
	if err != nil {
		return nil, err
	}
	if SumIDs(data) != p.IDs {
		return nil, ErrIDs
	}
	ids, err := DecodeIDs(data)
	if err != nil {
		return nil, err
	}
	if n := int64(ids.Len()); n == 0 || n != p.Rows && !exploded || ids.Min() != p.MinID || ids.Max() != p.MaxID {
		return nil, fmt.Errorf("%w: it is of another part", ErrIDs)
	}
	return ids, nil
}
