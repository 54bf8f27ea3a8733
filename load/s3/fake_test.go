package s3

import (
	"bytes"
	"cmp"
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
)

// fake is a store that can ignore conditions, as some do, and that refuses what
// a test tells it to. Real servers do the rest; this one plays what they
// cannot be made to do.
type fake struct {
	mu      sync.Mutex
	objects map[string]fakeObject
	uploads map[string]map[int][]byte
	ids     map[string]string // of uploads
	keys    map[string]string // of uploads
	serial  int
	now     time.Time
	ignores []string // conditions of writes
	// refuse answers in the store's place if it gives a status.
	refuse func(r *http.Request) (status int, code string, headers http.Header)
	calls  []string
}

type fakeObject struct {
	data    []byte
	id      string
	header  http.Header
	changed time.Time
}

func newFake(t testing.TB) (*fake, *httptest.Server) {
	t.Helper()
	f := &fake{objects: map[string]fakeObject{}, uploads: map[string]map[int][]byte{}, ids: map[string]string{}, keys: map[string]string{}, now: time.Now().UTC().Truncate(time.Second)}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	return f, server
}

// fakeDestination opens the fake store with one try for each request.
func fakeDestination(t testing.TB, change func(*Options)) (*fake, *Destination) {
	t.Helper()
	f, server := newFake(t)
	o := Options{Endpoint: server.URL}
	if change != nil {
		change(&o)
	}
	d, err := New(context.Background(), "s3://bucket/lake", o)
	if err != nil {
		t.Fatal(err)
	}
	once := d.client.Options()
	once.Retryer = aws.NopRetryer{}
	d.client = awss3.New(once)
	return f, d
}

func etag(data []byte) string {
	sum := md5.Sum(data)
	return `"` + hex.EncodeToString(sum[:]) + `"`
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, r.Method+" "+r.URL.RequestURI())
	data, _ := io.ReadAll(r.Body)
	w.Header().Set("Date", f.now.Format(http.TimeFormat))
	if f.refuse != nil {
		if status, code, headers := f.refuse(r); status != 0 {
			for k, v := range headers {
				w.Header()[k] = v
			}
			answer(w, r, status, code)
			return
		}
	}
	if q := r.URL.Query(); r.Method == http.MethodGet && (q.Has("uploads") || q.Has("list-type")) {
		f.list(w, q)
		return
	} else if q.Has("uploads") || q.Has("uploadId") {
		f.multipart(w, r, data)
		return
	}
	o, there := f.objects[r.URL.Path]
	switch r.Method {
	case http.MethodPut:
		if !f.holds(r) {
			answer(w, r, http.StatusPreconditionFailed, "PreconditionFailed")
			return
		}
		f.objects[r.URL.Path] = fakeObject{data, r.Header.Get("X-Amz-Meta-Formetl-Id"), r.Header, f.now}
		w.Header().Set("ETag", etag(data))
	case http.MethodDelete:
		delete(f.objects, r.URL.Path)
		w.WriteHeader(http.StatusNoContent)
	default:
		if !there {
			answer(w, r, http.StatusNotFound, "NoSuchKey")
			return
		}
		w.Header().Set("ETag", etag(o.data))
		w.Header().Set("Last-Modified", o.changed.Format(http.TimeFormat))
		w.Header().Set("X-Amz-Meta-Formetl-Id", o.id)
		w.Header().Set("Content-Length", strconv.Itoa(len(o.data)))
		if r.Method == http.MethodGet {
			_, _ = w.Write(o.data)
		}
	}
}

// holds tells whether the condition of a write holds.
func (f *fake) holds(r *http.Request) bool {
	o, there := f.objects[r.URL.Path]
	condition := func(name string) string {
		if slices.Contains(f.ignores, name) {
			return ""
		}
		return r.Header.Get(name)
	}
	match := condition("If-Match")
	return (condition("If-None-Match") == "" || !there) && (match == "" || there && match == etag(o.data))
}

func (f *fake) multipart(w http.ResponseWriter, r *http.Request, data []byte) {
	q := r.URL.Query()
	id := q.Get("uploadId")
	parts, there := f.uploads[id]
	if !there && !q.Has("uploads") {
		answer(w, r, http.StatusNotFound, "NoSuchUpload")
		return
	}
	switch {
	case q.Has("uploads"):
		f.serial++
		id = "upload-" + strconv.Itoa(f.serial)
		f.uploads[id], f.ids[id] = map[int][]byte{}, r.Header.Get("X-Amz-Meta-Formetl-Id")
		f.keys[id] = strings.TrimPrefix(r.URL.Path, "/bucket/")
		fmt.Fprintf(w, "<InitiateMultipartUploadResult><UploadId>%s</UploadId></InitiateMultipartUploadResult>", id)
	case r.Method == http.MethodPut:
		n, _ := strconv.Atoi(q.Get("partNumber"))
		parts[n] = data
		w.Header().Set("ETag", etag(data))
	case r.Method == http.MethodDelete:
		delete(f.uploads, id)
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodGet:
		fmt.Fprint(w, "<ListPartsResult>")
		for n, data := range parts {
			fmt.Fprintf(w, "<Part><PartNumber>%d</PartNumber><Size>%d</Size></Part>", n, len(data))
		}
		fmt.Fprint(w, "</ListPartsResult>")
	default:
		if !f.holds(r) {
			answer(w, r, http.StatusPreconditionFailed, "PreconditionFailed")
			return
		}
		var whole bytes.Buffer
		for n := 1; n <= len(parts); n++ {
			whole.Write(parts[n])
		}
		f.objects[r.URL.Path] = fakeObject{whole.Bytes(), f.ids[id], r.Header, f.now}
		delete(f.uploads, id)
		fmt.Fprint(w, "<CompleteMultipartUploadResult><ETag>x</ETag></CompleteMultipartUploadResult>")
	}
}

// list answers two keys a page, after the last one of the page before.
func (f *fake) list(w http.ResponseWriter, q url.Values) {
	type entry struct{ key, id string }
	var all []entry
	after := entry{q.Get("continuation-token"), ""}
	root := "ListBucketResult"
	if q.Has("uploads") {
		root, after = "ListMultipartUploadsResult", entry{q.Get("key-marker"), q.Get("upload-id-marker")}
		for id := range f.uploads {
			all = append(all, entry{f.keys[id], id})
		}
	} else {
		for path := range f.objects {
			all = append(all, entry{strings.TrimPrefix(path, "/bucket/"), ""})
		}
	}
	order := func(a, b entry) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.id, b.id)) }
	all = slices.DeleteFunc(all, func(e entry) bool {
		return !strings.HasPrefix(e.key, q.Get("prefix")) || order(e, after) <= 0
	})
	slices.SortFunc(all, order)
	more := len(all) > 2
	all = all[:min(2, len(all))]
	fmt.Fprintf(w, "<%s><IsTruncated>%t</IsTruncated>", root, more)
	for _, e := range all {
		if q.Has("uploads") {
			fmt.Fprintf(w, "<Upload><Key>%s</Key><UploadId>%s</UploadId><Initiated>%s</Initiated></Upload>", e.key, e.id, f.now.Format(time.RFC3339))
		} else {
			fmt.Fprintf(w, "<Contents><Key>%s</Key></Contents>", e.key)
		}
	}
	if more {
		last := all[len(all)-1]
		fmt.Fprintf(w, "<NextContinuationToken>%s</NextContinuationToken><NextKeyMarker>%s</NextKeyMarker><NextUploadIdMarker>%s</NextUploadIdMarker>", last.key, last.key, last.id)
	}
	fmt.Fprintf(w, "</%s>", root)
}

func answer(w http.ResponseWriter, r *http.Request, status int, code string) {
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_ = xml.NewEncoder(w).Encode(struct {
			XMLName struct{} `xml:"Error"`
			Code    string
			Message string
		}{Code: code, Message: "as the test wants"})
	}
}
