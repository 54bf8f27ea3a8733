package parquetout

import (
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
	return c.encoder.EncodeAll(src, dst[:0]), nil
}
