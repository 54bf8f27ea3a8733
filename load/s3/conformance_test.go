package s3

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/load/loadtest"
	"github.com/formetl/formetl/load/loadtest/needs"
)

// names lists the objects below a destination. Uploads that are not completed
// are no objects; they are told as if they lay in the control folder.
func names(t testing.TB, d *Destination) []string {
	t.Helper()
	var found []string
	objects := awss3.NewListObjectsV2Paginator(d.client, &awss3.ListObjectsV2Input{Bucket: &d.name, Prefix: &d.prefix})
	for objects.HasMorePages() {
		page, err := objects.NextPage(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range page.Contents {
			found = append(found, strings.TrimPrefix(aws.ToString(o.Key), d.prefix))
		}
	}
	uploads, err := d.client.ListMultipartUploads(context.Background(), &awss3.ListMultipartUploadsInput{Bucket: &d.name, Prefix: &d.prefix})
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range uploads.Uploads {
		// MinIO lists more than the prefix asks for.
		if strings.HasPrefix(aws.ToString(u.Key), d.prefix) {
			found = append(found, load.ControlFolder+"/upload-"+aws.ToString(u.UploadId))
		}
	}
	slices.Sort(found)
	return found
}

func TestDestination(t *testing.T) {
	eachServer(t, func(t *testing.T, s server) {
		if s.CAFile != "" { // over TLS it is the same once more
			needs.Long(t)
		}
		loadtest.Destination(t, func(t *testing.T) loadtest.Place {
			prefix := "lake/" + strings.Map(plain, t.Name())
			return loadtest.Place{
				Open:  func() load.Destination { return s.open(t, prefix) },
				Names: func() []string { return names(t, s.open(t, prefix)) },
			}
		})
	})
}

func plain(r rune) rune {
	if r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
		return r
	}
	return '-'
}
