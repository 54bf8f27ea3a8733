package s3

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/internal/lease"
)

// conditions are the conditions of requests that a store honours.
type conditions struct {
	put      bool // If-None-Match and If-Match of PutObject
	complete bool // If-None-Match of CompleteMultipartUpload
}

// prober finds out which conditions the store honours.
type prober struct {
	*bucket
	mu    sync.Mutex
	known *conditions // nil before the probe
}

// conditions returns which conditions the store honours. AWS honours all.
// Another store is probed once, because a store that ignores the header would
// silently overwrite objects.
func (p *prober) conditions(ctx context.Context) (conditions, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known != nil {
		return *p.known, nil
	}
	c := conditions{put: true, complete: true}
	if p.custom {
		var err error
		if c, err = p.probe(ctx); err != nil {
			return conditions{}, err
		}
	}
	if !c.put || !c.complete {
		p.options.Logger.LogAttrs(ctx, slog.LevelWarn, "the store does not honour conditional writes; the lease alone keeps two runs apart",
			slog.String("path", p.String()), slog.Bool("conditional_put", c.put), slog.Bool("conditional_complete", c.complete))
	}
	p.known = &c
	return c, nil
}

// HonoursConditions implements load.Guarded.
func (p *prober) HonoursConditions(ctx context.Context) (bool, error) {
	c, err := p.conditions(ctx)
	return c.put && c.complete, err
}

// probe writes an object, and then tests whether the store refuses requests whose conditions fail.
func (p *prober) probe(ctx context.Context) (c conditions, err error) {
	name := load.ProbePrefix + rand.Text()
	// The object names its process, as a lease does, so that no sweep removes
	// it while it is used.
	content, _ := json.Marshal(lease.Record{Process: lease.ThisProcess(), Renewed: time.Now().UTC()}) // as in leaseObject.write
	if _, err := p.client.PutObject(ctx, p.putInput(name, content, rand.Text())); err != nil {
		return c, p.fail(ctx, "write", name, err)
	}
	defer func() {
		ctx, cancel := cleanup(ctx)
		defer cancel()
		err = errors.Join(err, p.remove(ctx, name))
	}()
	c.put = true
	for _, condition := range []awss3.PutObjectInput{{IfNoneMatch: aws.String("*")}, {IfMatch: aws.String(`"00000000000000000000000000000000"`)}} {
		again := p.putInput(name, content, rand.Text())
		again.IfNoneMatch, again.IfMatch = condition.IfNoneMatch, condition.IfMatch
		_, err := p.client.PutObject(ctx, again)
		refused, err := p.refuses(ctx, name, err)
		if err != nil {
			return c, err
		}
		c.put = c.put && refused
	}
	c.complete, err = p.probeComplete(ctx, name)
	return c, err
}

// probeComplete tells whether the store refuses to complete an upload under a
// name that is taken.
func (p *prober) probeComplete(ctx context.Context, name string) (bool, error) {
	begun, err := p.client.CreateMultipartUpload(ctx, &awss3.CreateMultipartUploadInput{Bucket: &p.name, Key: p.key(name)})
	if err != nil {
		return false, p.fail(ctx, "create", name, err)
	}
	id := aws.ToString(begun.UploadId)
	part, err := p.client.UploadPart(ctx, &awss3.UploadPartInput{
		Bucket: &p.name, Key: p.key(name), UploadId: &id, PartNumber: aws.Int32(1), Body: bytes.NewReader([]byte("formetl")),
	})
	if err != nil {
		return false, errors.Join(p.fail(ctx, "write", name, err), p.abort(ctx, name, id))
	}
	_, err = p.client.CompleteMultipartUpload(ctx, &awss3.CompleteMultipartUploadInput{
		Bucket: &p.name, Key: p.key(name), UploadId: &id, IfNoneMatch: aws.String("*"),
		MultipartUpload: &types.CompletedMultipartUpload{Parts: []types.CompletedPart{{PartNumber: aws.Int32(1), ETag: part.ETag}}},
	})
	refuses, err := p.refuses(ctx, name, err)
	return refuses, errors.Join(err, p.abort(ctx, name, id))
}

// refuses tells from the answer whether the store refused a write whose
// condition does not hold. A store that knows no conditions ignores them or
// answers 501.
func (p *prober) refuses(ctx context.Context, name string, err error) (bool, error) {
	switch {
	case err == nil, status(err) == http.StatusNotImplemented, code(err) == "NotImplemented":
		return false, nil
	case unmet(err):
		return true, nil
	}
	return false, p.fail(ctx, "write", name, err)
}
