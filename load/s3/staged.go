package s3

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/formetl/formetl/load"
)

// staged is the content of Prepared.Staged. It describes an upload with its
// parts, or an empty object, of which the store holds nothing yet.
type staged struct {
	ID     string       `json:"id,omitempty"`     // formetl's id of the object; "" if unknown
	Run    string       `json:"run,omitempty"`    // run whose folder holds the upload's marker, "" if there is none
	Upload string       `json:"upload,omitempty"` // the store's id of the upload; "" for none
	Parts  []stagedPart `json:"parts,omitempty"`  // the upload's parts in order, from number 1
}

// stagedPart is what CompleteMultipartUpload needs of a part. Its keys are short, because an
// upload may have 10,000 parts.
type stagedPart struct {
	ETag  string `json:"e"`
	CRC32 string `json:"c,omitempty"` // checksum of the part in base64, "" if none was sent
}

// stagedScheme is the prefix of a Prepared.Staged that this package made. It names a version.
const stagedScheme = "s3-1:"

func (s staged) encode() string {
	data, _ := json.Marshal(s) // encoding strings cannot fail
	return stagedScheme + base64.RawURLEncoding.EncodeToString(data)
}

var errNotStaged = errors.New("it is not a prepared object of an S3 destination")

// decodeStaged reads the text that staged.encode returned. It refuses any other text, because
// records may have been damaged or written by anyone.
func decodeStaged(text string) (s staged, err error) {
	encoded, ok := strings.CutPrefix(text, stagedScheme)
	data, err := base64.RawURLEncoding.Strict().DecodeString(encoded)
	if !ok || err != nil || json.Unmarshal(data, &s) != nil {
		return staged{}, errNotStaged
	}
	id := isID(s.ID) || s.ID == "" && s.Run == "" && s.Upload != ""
	run := s.Run == "" || load.CheckRun(s.Run) == nil
	if !id || !run || len(s.Parts) > MaxParts || slices.ContainsFunc(s.Parts, func(p stagedPart) bool { return p.ETag == "" }) {
		return staged{}, errNotStaged
	}
	return s, nil
}

// isID tells whether text is an id that rand.Text may have made: base32 letters
// and digits.
func isID(text string) bool {
	return text != "" && len(text) <= 64 && strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
}

// marker is a small object that tells of an upload under way. Listing alone
// does not find uploads. MinIO lists them for an exact key only and not after a
// restart, and no store tells which program began them. The marker is written
// as soon as the upload has an id, and removed after the upload has ended.
type marker struct {
	Name   string `json:"name"`   // the object's final name
	Upload string `json:"upload"` // the store's id of the multipart upload
}

func (d *Destination) mark(ctx context.Context, run, id string, m marker) error {
	data, _ := json.Marshal(m) // encoding strings cannot fail
	_, err := d.put(ctx, load.StagedName(run, id), append(data, '\n'), load.AnyVersion)
	return err
}

// unmark removes the marker of an upload that has ended, if it has one.
func (d *Destination) unmark(ctx context.Context, s staged) error {
	if s.Run == "" {
		return nil
	}
	return d.remove(ctx, load.StagedName(s.Run, s.ID))
}

// Staged returns the uploads that have a marker, and other uploads that the store lists: their
// run died between creating and marking them, or never learnt that they were created, or they
// are another program's. It lists uploads before it reads markers. So if a live run's upload
// was listed, its marker is there by then, or the upload has ended.
func (d *Destination) Staged(ctx context.Context) (found []load.Leftover, err error) {
	uploads, err := d.uploads(ctx)
	if err != nil {
		return nil, err
	}
	objects, err := d.List(ctx, load.ControlFolder+"/")
	if err != nil {
		return nil, err
	}
	marked := map[string]bool{} // the store's ids of the uploads that have a marker
	for _, o := range objects {
		run, id, ok := load.ParseStagedName(o.Name)
		if !ok || !isID(id) {
			continue
		}
		data, _, err := d.Get(ctx, o.Name)
		if errors.Is(err, load.ErrNotExist) {
			continue // the upload ended meanwhile, so its marker is gone
		}
		if err != nil {
			return nil, err
		}
		var m marker
		if json.Unmarshal(data, &m) != nil || m.Upload == "" || load.CheckObjectName(m.Name) != nil {
			m = marker{} // the marker cannot be read, so it is all that can be removed
		}
		l := d.leftover(m.Name, staged{ID: id, Run: run, Upload: m.Upload}, o.Changed)
		if m.Upload == "" {
			l.Path = d.path(o.Name)
		}
		found, marked[m.Upload] = append(found, l), true
	}
	for _, l := range uploads {
		s, _ := decodeStaged(l.Staged) // the text was encoded just now, so it is valid
		if marked[s.Upload] {
			continue
		}
		if err := d.ask(ctx, l.Name, s.Upload); noUpload(err) {
			continue // the upload ended meanwhile
		}
		found = append(found, l)
	}
	return found, d.checkContext(ctx, "list the uploads below", "")
}

func (d *Destination) leftover(name string, s staged, began time.Time) load.Leftover {
	return load.Leftover{
		Kind: load.UnfinishedUpload, Run: s.Run, Path: d.path(name) + " (upload " + s.Upload + ")", Bytes: -1, Since: began, Name: name, Staged: s.encode(),
	}
}

// uploads lists the unfinished multipart uploads. It returns none if the store does not list
// uploads, or does not permit it.
func (d *Destination) uploads(ctx context.Context) (found []load.Leftover, err error) {
	pages := awss3.NewListMultipartUploadsPaginator(d.client, &awss3.ListMultipartUploadsInput{Bucket: &d.name, Prefix: &d.prefix})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if tellsNothing(err) {
			return nil, nil
		}
		if err != nil {
			return nil, d.fail(ctx, "list the uploads below", "", err)
		}
		for _, up := range page.Uploads {
			if name, ok := strings.CutPrefix(aws.ToString(up.Key), d.prefix); ok && load.CheckObjectName(name) == nil {
				found = append(found, d.leftover(name, staged{Upload: aws.ToString(up.UploadId)}, aws.ToTime(up.Initiated)))
			}
		}
	}
	return found, nil
}

// tellsNothing tells whether an error means that the store does not support or
// permit a request, although the credentials are valid.
func tellsNothing(err error) bool {
	switch status(err) {
	case http.StatusForbidden, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return code(err) != "SignatureDoesNotMatch" && code(err) != "InvalidAccessKeyId"
	}
	return false
}

// ask returns nil if the store knows the upload. Any error is the SDK's.
func (d *Destination) ask(ctx context.Context, name, uploadID string) error {
	_, err := d.client.ListParts(ctx, &awss3.ListPartsInput{
		Bucket: &d.name, Key: d.key(name), UploadId: &uploadID, MaxParts: aws.Int32(1),
	})
	return err
}

// How often an upload is aborted, and the pause between: a part of it may still arrive.
const (
	abortAttempts = 4
	abortPause    = 200 * time.Millisecond
)

// Abort aborts the upload, then removes its marker. It is no error if they are gone. If ctx is
// cancelled, Abort still has 2 s, because it cleans up after stopped runs.
func (d *Destination) Abort(ctx context.Context, p load.Prepared) error {
	s, err := decodeStaged(p.Staged)
	if err != nil {
		return load.BadName(p.Staged, err.Error())
	}
	ctx, cancel := load.Lingering(ctx, cleanupTimeout)
	defer cancel()
	if s.Upload != "" {
		if err := load.CheckObjectName(p.Name); err != nil {
			return err
		}
		if err := d.abort(ctx, p.Name, s.Upload); err != nil {
			return err
		}
	}
	return d.unmark(ctx, s)
}

// abort aborts an upload until the store no longer knows it, because a part that still arrives
// can keep the upload (Amazon S3 API reference, AbortMultipartUpload).
func (d *Destination) abort(ctx context.Context, name, uploadID string) error {
	for range abortAttempts {
		_, err := d.client.AbortMultipartUpload(ctx, &awss3.AbortMultipartUploadInput{Bucket: &d.name, Key: d.key(name), UploadId: &uploadID})
		gone := noUpload(err)
		if err == nil {
			err = d.ask(ctx, name, uploadID)
			gone = noUpload(err) || tellsNothing(err) // also if the store does not tell whether it knows it
		}
		if gone {
			return nil
		}
		if err != nil {
			return d.fail(ctx, "abort the upload of", name, err)
		}
		if load.Pause(ctx, abortPause) != nil {
			return d.checkContext(ctx, "abort the upload of", name)
		}
	}
	return &load.Error{Kind: load.ErrAway, Op: "abort the upload of", Path: d.path(name), Remedy: "run the same command again later", Err: errors.New("a part of it is still arriving")}
}
