package s3

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/formetl/formetl/load"
)

// idMetadata is the metadata key of an object's id.
const idMetadata = "formetl-id"

// firstBuffer is how many bytes of memory an upload gets at first, because many uploads are
// small.
const firstBuffer = 64 << 10

// upload is a multipart upload that is being written. One goroutine uses it;
// other goroutines send its parts.
type upload struct {
	d      *Destination
	ctx    context.Context //nolint:containedctx // Write has no context of its own, so Stage's bounds the whole upload
	cancel context.CancelCauseFunc
	run    string
	name   string
	id     string // value of the metadata key formetl-id
	upload string // the store's id of the multipart upload, "" before the first part
	hash   hash.Hash
	bytes  int64
	part   []byte // the part that is being filled
	ended  bool
	flight flight
}

// flight holds the parts of an upload that are on their way or have arrived.
type flight struct {
	free    chan []byte // memory for parts; its capacity is the number of parts in flight
	sending sync.WaitGroup

	mu    sync.Mutex
	parts []stagedPart // parts in order; the entry of a part on its way is empty
	err   error        // the first failure of a part
}

// Stage begins an object. Nothing is sent until the first part is full.
func (d *Destination) Stage(ctx context.Context, run, name string) (load.Upload, error) {
	if err := load.CheckObjectName(name); err != nil {
		return nil, err
	}
	if err := load.CheckRun(run); err != nil {
		return nil, err
	}
	if err := d.checkContext(ctx, "stage", name); err != nil {
		return nil, err
	}
	u := &upload{d: d, run: run, name: name, id: rand.Text(), hash: sha256.New(), flight: flight{free: make(chan []byte, d.options.PartsInFlight)}}
	for range cap(u.flight.free) - 1 { // one part is always being filled
		u.flight.free <- nil
	}
	u.ctx, u.cancel = context.WithCancelCause(ctx)
	return u, nil
}

// Write appends to the object. It waits while the allowed number of parts is in flight. After
// an error every later call returns the error.
func (u *upload) Write(p []byte) (int, error) {
	if u.ended {
		return 0, fmt.Errorf("cannot write to %s: the upload has ended", u.d.path(u.name))
	}
	written := 0
	for written < len(p) {
		if err := u.flight.failure(); err != nil {
			return written, err
		}
		n := u.fill(p[written:])
		u.hash.Write(p[written : written+n])
		u.bytes += int64(n)
		written += n
		if int64(len(u.part)) == u.d.options.PartSize {
			if err := u.send(); err != nil {
				return written, u.fail(err)
			}
		}
	}
	return written, u.flight.failure()
}

// fill copies bytes of p into the part that is being filled, and returns how many fit. The
// memory of the first part grows; that of later parts is allocated at once.
func (u *upload) fill(p []byte) int {
	size := int(u.d.options.PartSize)
	n := min(len(p), size-len(u.part))
	if need := len(u.part) + n; need > cap(u.part) {
		room := size
		if len(u.flight.parts) == 0 {
			room = min(size, max(firstBuffer, 2*cap(u.part), need))
		}
		grown := make([]byte, len(u.part), room)
		copy(grown, u.part)
		u.part = grown
	}
	u.part = append(u.part, p[:n]...)
	return n
}

// send starts to send the filled part and takes memory for the next one.
func (u *upload) send() error {
	sent := len(u.flight.parts)
	if sent >= u.d.maxParts {
		return u.tooLarge()
	}
	if u.upload == "" {
		if err := u.begin(); err != nil {
			return err
		}
	}
	data := u.part
	u.part = nil
	u.flight.mu.Lock()
	u.flight.parts = append(u.flight.parts, stagedPart{})
	u.flight.mu.Unlock()
	u.flight.sending.Go(func() {
		part, err := u.put(sent+1, data)
		u.flight.mu.Lock()
		u.flight.parts[sent] = part
		u.flight.mu.Unlock()
		if err != nil {
			_ = u.fail(err) // Write and Prepare return the failure
		}
		u.flight.free <- data[:0]
	})
	select {
	case u.part = <-u.flight.free:
		return nil
	case <-u.ctx.Done():
		return u.d.checkContext(u.ctx, "write", u.name)
	}
}

// tooLarge is the error of an object with more parts than an upload may have.
func (u *upload) tooLarge() error {
	size := u.d.options.PartSize
	return &load.Error{
		Kind: load.ErrUnusable, Op: "write", Path: u.d.path(u.name),
		Remedy: fmt.Sprintf("set part_size: %dMiB, or more, in the output's s3: settings", min(2*size, MaxPartSize)>>20),
		Err:    fmt.Errorf("it has more than %d parts of %d bytes, the most that S3 allows", u.d.maxParts, size),
	}
}

// begin creates the multipart upload and its marker. If the run is stopped meanwhile, begin
// waits a while for the store's answer, because an upload whose id is unknown could not be
// aborted.
func (u *upload) begin() error {
	d := u.d
	ctx, cancel := load.Lingering(u.ctx, cleanupTimeout)
	defer cancel()
	in := &awss3.CreateMultipartUploadInput{
		Bucket: &d.name, Key: d.key(u.name),
		Metadata: map[string]string{idMetadata: u.id},
	}
	in.ServerSideEncryption, in.SSEKMSKeyId = d.encryption()
	in.ChecksumAlgorithm = d.checksum()
	out, err := d.client.CreateMultipartUpload(ctx, in)
	if err != nil {
		return d.fail(u.ctx, "create", u.name, err)
	}
	if u.upload = aws.ToString(out.UploadId); u.upload == "" {
		return &load.Error{Kind: load.ErrFailed, Op: "create", Path: d.path(u.name), Remedy: "check that the endpoint is an S3 store", Err: errors.New("the store did not return an upload id")}
	}
	if err := d.checkContext(u.ctx, "create", u.name); err != nil {
		return err // the caller's Abort ends the upload
	}
	return d.mark(ctx, u.run, u.id, marker{Name: u.name, Upload: u.upload})
}

// put sends one part to the store. The SDK can read the part's bytes again for a retry.
func (u *upload) put(number int, data []byte) (stagedPart, error) {
	d := u.d
	out, err := d.client.UploadPart(u.ctx, &awss3.UploadPartInput{
		Bucket: &d.name, Key: d.key(u.name), UploadId: &u.upload,
		PartNumber: aws.Int32(int32(number)), Body: bytes.NewReader(data), ContentLength: aws.Int64(int64(len(data))),
		ChecksumAlgorithm: d.checksum(),
	})
	if err != nil {
		return stagedPart{}, d.fail(u.ctx, "write", u.name, err)
	}
	part := stagedPart{ETag: aws.ToString(out.ETag)}
	if d.checksum() != "" {
		part.CRC32 = aws.ToString(out.ChecksumCRC32)
	}
	return part, nil
}

// fail keeps an upload's first failure and stops sending. It returns the first failure.
func (u *upload) fail(err error) error {
	u.flight.mu.Lock()
	defer u.flight.mu.Unlock()
	if u.flight.err == nil {
		u.flight.err = err
		u.cancel(err)
	}
	return u.flight.err
}

func (f *flight) failure() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// Prepare sends the object's last part and waits until all parts have arrived.
func (u *upload) Prepare(ctx context.Context) (load.Prepared, error) {
	if u.ended {
		return load.Prepared{}, fmt.Errorf("cannot prepare %s: the upload has ended", u.d.path(u.name))
	}
	if err := u.d.checkContext(ctx, "prepare", u.name); err != nil {
		return load.Prepared{}, err
	}
	stop := context.AfterFunc(ctx, func() { u.cancel(context.Cause(ctx)) })
	err := u.finish()
	if !stop() && err == nil {
		err = u.d.checkContext(ctx, "prepare", u.name)
	}
	if err != nil {
		_ = u.Abort() // the error of finish is returned, not that of Abort
		return load.Prepared{}, err
	}
	u.ended = true
	u.part, u.flight.free = nil, nil
	u.cancel(nil)
	return load.Prepared{Name: u.name, Staged: u.staged().encode(), Bytes: u.bytes, SHA256: hex.EncodeToString(u.hash.Sum(nil))}, nil
}

func (u *upload) staged() staged {
	s := staged{ID: u.id, Upload: u.upload, Parts: u.flight.parts}
	if u.upload != "" {
		s.Run = u.run
	}
	return s
}

// finish sends the upload's last part and waits until all parts have arrived.
func (u *upload) finish() error {
	if len(u.part) > 0 && u.flight.failure() == nil {
		if err := u.send(); err != nil {
			_ = u.fail(err) // the failure is returned below
		}
	}
	u.flight.sending.Wait()
	return u.flight.failure()
}

// Abort aborts the multipart upload. After Prepare it does nothing.
func (u *upload) Abort() error {
	if u.ended {
		return nil
	}
	u.ended = true
	u.cancel(context.Canceled)
	u.flight.sending.Wait()
	u.part, u.flight.free = nil, nil
	if u.upload == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(u.ctx), cleanupTimeout) // u.ctx is cancelled by now
	defer cancel()
	if u.flight.err != nil { // the store may still be writing a part whose sending was broken off
		if err := u.d.abort(ctx, u.name, u.upload); err != nil {
			return err
		}
		_ = load.Pause(ctx, abortPause) // the pause has no context that could end it
	}
	s := u.staged()
	s.Parts = nil // parts that did not arrive have no ETag
	return u.d.Abort(ctx, load.Prepared{Name: u.name, Staged: s.encode()})
}
