package definition

import "testing"

func TestChildPath(t *testing.T) {
	for parent, want := range map[string]string{
		"/out/f.csv": "/out/f__c.csv", "/out/f.csv.gz": "/out/f__c.csv.gz", "/o.d/f": "/o.d/f__c", "/out/f.2026.ndjson.zst": "/out/f.2026__c.ndjson.zst",
		"/lake/f/": "/lake/f__c/", "s3://b/x.d/{form}/": "s3://b/x.d/{form}__c/", "s3://b/f.parquet": "s3://b/f__c.parquet", "/out/{form}.csv": "/out/{form}__c.csv",
	} {
		if got := ChildPath(parent, "c"); got != want {
			t.Errorf("%s: %s, want %s", parent, got, want)
		}
	}
}
