package parquetout

import (
	"encoding/binary"
	"fmt"

	klauspost "github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/compress/zstd"
)

// zstdWindow is how many bytes back zstd looks for a match: two pages of ordinary
// size. Each page is compressed by itself, so a longer window would only cost
// memory. The library's default of 4 MiB takes 8 MiB for each encoder.
const zstdWindow = 128 << 10

// zstdCodec compresses all pages of a file with one encoder. parquet-go's codec has no
// setting for the window.
type zstdCodec struct {
	zstd.Codec
	encoder *klauspost.Encoder
}

func newZstdCodec() (*zstdCodec, error) {
	encoder, err := klauspost.NewWriter(nil,
		klauspost.WithEncoderConcurrency(1),
		klauspost.WithEncoderLevel(klauspost.SpeedFastest),
		klauspost.WithWindowSize(zstdWindow),
		klauspost.WithZeroFrames(true), // an empty page is a frame too
		klauspost.WithEncoderCRC(false),
	)
	if err != nil {
		return nil, fmt.Errorf("parquet: zstd: %w", err)
	}
	return &zstdCodec{encoder: encoder}, nil
}

// Encode compresses the page src into the memory of dst, and returns the result.
func (c *zstdCodec) Encode(dst, src []byte) ([]byte, error) {
	if len(src) < storedBytes {
		return stored(dst[:0], src), nil
	}
	return c.encoder.EncodeAll(src, dst[:0]), nil
}

// storedBytes is the size in bytes from which on a page is compressed. zstd spends more on
// its tables than it gains below: most dictionaries, and all pages of a day's few results.
const storedBytes = 1 << 10

// stored appends src, which is shorter than storedBytes, as a zstd frame of one raw block
// (RFC 8878, section 3.1.1). The header of the frame holds the size of src.
func stored(dst, src []byte) []byte {
	const singleSegment, twoBytes, lastBlock = 0x20, 0x40, 1
	dst = append(dst, 0x28, 0xb5, 0x2f, 0xfd)
	if n := len(src); n < 256 {
		dst = append(dst, singleSegment, byte(n))
	} else {
		dst = binary.LittleEndian.AppendUint16(append(dst, singleSegment|twoBytes), uint16(n-256))
	}
	block := len(src)<<3 | lastBlock
	return append(append(dst, byte(block), byte(block>>8), byte(block>>16)), src...)
}
