package s3

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/formetl/formetl/load"
)

// How often Commit looks for the object of an upload that is gone, and the first pause. The
// pauses double; they add up to 1.55 s.
const (
	firstLook = 50 * time.Millisecond
	lastLook  = 800 * time.Millisecond
)

// Commit completes the upload under its final name. Unless p.Replace is set, the request has
// the condition that the name is free. Whatever the store answers, Commit then looks at the
// object of that name: Versitygw, for one, reports success for an upload that is gone if any
// object has its name. An upload that can no longer be used is aborted.
func (d *Destination) Commit(ctx context.Context, p load.Prepared) error {
	s, err := checkStaged(p)
	if err != nil {
		return err
	}
	if err := d.commit(ctx, p, s); err != nil {
		return err
	}
	ctx, cancel := load.Lingering(ctx, cleanupTimeout)
	defer cancel()
	if err := d.unmark(ctx, s); err != nil { // the object is committed, though its marker stays
		d.options.Logger.LogAttrs(ctx, slog.LevelWarn, "the file was written, but a marker of its upload could not be removed; it does no harm; once what the error says is mended, `formetl clean` removes it",
			slog.String("path", d.path(p.Name)), slog.String("error", err.Error()))
	}
	return nil
}

func (d *Destination) commit(ctx context.Context, p load.Prepared, s staged) error {
	var unless *string // If-None-Match: "*" where the name must be free; nil to replace
	if !p.Replace {
		unless = aws.String("*")
	}
	publish := d.complete
	if s.Upload == "" {
		publish = d.putEmpty
	}
	switch err := publish(ctx, p, s, unless); {
	case err == nil:
		return d.shown(ctx, p, s)
	case noUpload(err) || code(err) == "InvalidPart": // it is gone; another process may have completed it
		if gone := d.shown(ctx, p, s); gone != nil {
			return fmt.Errorf("%w (the store says %s)", gone, code(err))
		}
		return nil
	case unmet(err):
		return d.taken(ctx, p, s)
	default:
		return d.fail(ctx, "create", p.Name, err)
	}
}

// taken ends a commit whose final name is taken. It returns nil if the object of that name is
// the prepared one. The store keeps an upload that it refused to complete, so taken aborts it.
func (d *Destination) taken(ctx context.Context, p load.Prepared, s staged) error {
	err := d.shown(ctx, p, s)
	switch {
	case errors.Is(err, load.ErrConflict):
		return errors.Join(err, d.Abort(ctx, p))
	case err != nil || s.Upload == "":
		return err
	}
	return d.abort(ctx, p.Name, s.Upload)
}

// complete completes the upload. unless is the value of If-None-Match in the request, nil for
// none.
func (d *Destination) complete(ctx context.Context, p load.Prepared, s staged, unless *string) error {
	parts := make([]types.CompletedPart, len(s.Parts))
	for i, part := range s.Parts {
		parts[i] = types.CompletedPart{PartNumber: aws.Int32(int32(i + 1)), ETag: aws.String(part.ETag), ChecksumCRC32: optional(part.CRC32)}
	}
	in := &awss3.CompleteMultipartUploadInput{
		Bucket: &d.name, Key: d.key(p.Name), UploadId: &s.Upload,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: parts}, IfNoneMatch: unless,
	}
	_, err := d.client.CompleteMultipartUpload(ctx, in, func(o *awss3.Options) {
		if d.patient != nil {
			o.HTTPClient = d.patient
		}
	})
	return err
}

// putEmpty writes an empty data object in one request, because a multipart upload needs at
// least one byte.
func (d *Destination) putEmpty(ctx context.Context, p load.Prepared, s staged, unless *string) error {
	in := d.putInput(p.Name, nil, s.ID)
	in.IfNoneMatch = unless
	_, err := d.client.PutObject(ctx, in)
	return err
}

// committed returns nil if the final name holds exactly what was prepared: an object that has
// the upload's id, or the same length and SHA-256.
func (d *Destination) committed(ctx context.Context, p load.Prepared, s staged) error {
	final, err := d.head(ctx, p.Name)
	switch {
	case noKey(err):
		return fmt.Errorf("cannot create %s: %w", d.path(p.Name), load.ErrStagedGone)
	case err != nil:
		return d.fail(ctx, "create", p.Name, err)
	case final.Metadata[idMetadata] == s.ID && aws.ToInt64(final.ContentLength) == p.Bytes:
		return nil
	}
	if aws.ToInt64(final.ContentLength) == p.Bytes { // rarely, another process made the same part
		if _, digest, err := load.Digest(ctx, d, p.Name); err != nil || digest == p.SHA256 {
			return err
		}
	}
	if p.Replace {
		// It is no conflict that the name is taken: an object of that name was to be replaced. The
		// upload that should replace it is gone.
		return fmt.Errorf("cannot replace %s: %w", d.path(p.Name), load.ErrStagedGone)
	}
	return fmt.Errorf("cannot create %s: another object with this name exists, which formetl does not overwrite: %w", d.path(p.Name), load.ErrConflict)
}

// shown returns what committed returns. If the object is missing, it tries again for a while,
// because the store may not show the object yet.
func (d *Destination) shown(ctx context.Context, p load.Prepared, s staged) error {
	err := d.committed(ctx, p, s)
	for pause := firstLook; pause <= lastLook && errors.Is(err, load.ErrStagedGone); pause *= 2 {
		if load.Pause(ctx, pause) != nil {
			return d.checkContext(ctx, "commit", p.Name)
		}
		err = d.committed(ctx, p, s)
	}
	return err
}

// checkStaged refuses a prepared object that this package cannot have made. The
// error is a load.ErrConfig.
func checkStaged(p load.Prepared) (staged, error) {
	if err := load.CheckObjectName(p.Name); err != nil {
		return staged{}, err
	}
	s, err := decodeStaged(p.Staged)
	if err != nil {
		return staged{}, load.BadName(p.Staged, err.Error())
	}
	return s, nil
}

// Check returns nil if the upload or its completed object is there. An empty
// object has no upload, so it can always be committed. If the store does not
// support or permit the question, Check assumes that the upload is there, and
// Commit finds out.
func (d *Destination) Check(ctx context.Context, p load.Prepared) error {
	s, err := checkStaged(p)
	if err != nil {
		return err
	}
	if s.Upload == "" {
		return nil
	}
	err = d.ask(ctx, p.Name, s.Upload)
	switch {
	case err == nil:
		return nil
	case tellsNothing(err):
		d.untold.Do(func() {
			d.options.Logger.LogAttrs(ctx, slog.LevelWarn, "the store does not say whether unfinished uploads still exist; formetl assumes that they do, and you need not do anything",
				slog.String("path", d.String()), slog.String("error", d.fail(ctx, "look for the upload of", p.Name, err).Error()))
		})
		return nil
	case !noUpload(err):
		return d.fail(ctx, "look for the upload of", p.Name, err)
	}
	err = d.committed(ctx, p, s)
	if errors.Is(err, load.ErrConflict) {
		// Another object has the name. What matters here is that the upload is
		// gone.
		return fmt.Errorf("cannot create %s: another object has this name, and %w", d.path(p.Name), load.ErrStagedGone)
	}
	return err
}
