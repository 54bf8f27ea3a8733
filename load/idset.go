package load

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
)

// ErrIDs means that a set of ids is missing, damaged or of another part.
var ErrIDs = errors.New("the set of ids is damaged")

// EncodeIDs returns a set of ids as bytes, and the checksum that names it (see
// IDsName). Equal sets give equal bytes, however they were built.
func EncodeIDs(ids *roaring64.Bitmap) (data []byte, sha string, err error) {
	same, some := roaring64.New(), make([]uint64, 1024)
	for it := ids.ManyIterator(); ; {
		n := it.NextMany(some)
		if n == 0 {
			break
		}
		same.AddMany(some[:n])
	}
	same.RunOptimize()
	if data, err = same.ToBytes(); err != nil {
		return nil, "", err
	}
	return data, SumIDs(data), nil
}

// SumIDs returns the checksum that names a set of ids.
func SumIDs(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// DecodeIDs reads a set of ids. It returns ErrIDs if data is no such set. The
// library trusts the lengths in data: it allocates memory for the first one,
// and panics at impossible ones.
func DecodeIDs(data []byte) (ids *roaring64.Bitmap, err error) {
	if len(data) < 8 || binary.LittleEndian.Uint64(data) > uint64(len(data)/8) {
		return nil, ErrIDs
	}
	defer func() {
		if recover() != nil {
			err = ErrIDs
		}
	}()
	ids = roaring64.New()
	if ids.UnmarshalBinary(data) != nil {
		return nil, ErrIDs
	}
	return ids, nil
}

// PartIDs reads the set of the ids of a part that has rows. The error wraps ErrIDs if there
// is no set, or if it belongs to another part. exploded tells that rows are the elements of
// a list, of which a result may have any number.
func PartIDs(ctx context.Context, s Store, p Part, exploded bool) (*roaring64.Bitmap, error) {
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
	if n := ids.GetCardinality(); n == 0 || n != uint64(p.Rows) && !exploded || ids.Minimum() != uint64(p.MinID) || ids.Maximum() != uint64(p.MaxID) { //nolint:gosec // they are not negative
		return nil, fmt.Errorf("%w: it is of another part", ErrIDs)
	}
	return ids, nil
}
