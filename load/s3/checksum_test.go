package s3

import (
	"bytes"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
)

// On AWS every part has a CRC32, in a header over HTTP and in a trailer over
// TLS, and Complete must tell it again: the SDK's default, against servers
// that know it.
func TestChecksumsAsOnAWS(t *testing.T) {
	content := random(MinPartSize + 1)
	eachServer(t, func(t *testing.T, s server) {
		d := s.open(t, "checksums", func(o *Options) { o.PartSize = MinPartSize })
		o := d.client.Options()
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenSupported
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenSupported
		d.client = awss3.New(o)
		p := stage(t, d, "x.bin", content)
		staged, err := decodeStaged(p.Staged)
		if err != nil {
			t.Fatal(err)
		}
		for i, part := range staged.Parts {
			if part.CRC32 == "" {
				t.Errorf("part %d has no checksum", i+1)
			}
		}
		if err := s.open(t, "checksums").Commit(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		if got, _, err := d.Get(t.Context(), "x.bin"); err != nil || !bytes.Equal(got, content) {
			t.Errorf("read %d bytes back, %v", len(got), err)
		}
	})
}
