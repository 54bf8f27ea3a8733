package parquetout

import (
	"fmt"

	klauspost "github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/compress/zstd"
)

// zstdWindow is how far back a match may lie: two pages of ordinary values. A
// page is compressed by itself, so that a longer window only costs memory; the
// library's default of 4 MiB takes 8 MiB for each encoder.
const zstdWindow = 512 << 10

// zstdCodec compresses with one encoder for the file. parquet-go's codec takes
// no window, and keeps its encoders where the garbage collector drops them.
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

// Encode writes the compressed page over dst.
func (c *zstdCodec) Encode(dst, src []byte) ([]byte, error) {
	return c.encoder.EncodeAll(src, dst[:0]), nil
}
