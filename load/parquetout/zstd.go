package parquetout

import (
	"fmt"
	"sync"

	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/klauspost/compress/zstd"
)

// zstdWindow is how many bytes back zstd looks for a match: two pages of ordinary
// size. Each page is compressed by itself, so a longer window would only cost memory.
const zstdWindow = 128 << 10

// lastingZstd makes Arrow compress pages by encoders that are used again. Arrow's own codec
// makes a new encoder for each page, with a window of 4 MiB, which costs CPU and memory.
// RegisterCodec is the place that Arrow has for another codec.
var lastingZstd = sync.OnceValue(func() error {
	codec, err := compress.GetCodec(compress.Codecs.Zstd)
	if err != nil {
		return fmt.Errorf("parquet: zstd: %w", err)
	}
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(zstdWindow), zstd.WithZeroFrames(true), zstd.WithEncoderCRC(false))
	if err != nil {
		return fmt.Errorf("parquet: zstd: %w", err)
	}
	compress.RegisterCodec(compress.Codecs.Zstd, zstdCodec{codec, encoder})
	return nil
})

type zstdCodec struct {
	compress.Codec
	encoder *zstd.Encoder
}

// EncodeLevel compresses the page src into the memory of dst, and returns the result.
func (c zstdCodec) EncodeLevel(dst, src []byte, _ int) []byte {
	return c.encoder.EncodeAll(src, dst[:0])
}
