package ddl

import (
	"net/url"
	"slices"
	"strings"
)

// scheme is the path's scheme, "" for a local one.
func (w Written) scheme() string {
	scheme, _, remote := strings.Cut(w.Path, "://")
	if !remote {
		return ""
	}
	return scheme
}

// named tells whether statements name the parts, as opposed to a pattern.
func (w Written) named(o Options) bool {
	return w.Known && (!w.Dataset() || !o.Glob)
}

// objects are the output's data objects relative to the path: the parts where
// they are known, else the pattern that finds them.
func (w Written) objects(o Options) []string {
	switch {
	case !w.Dataset():
		return []string{""}
	case !w.named(o):
		return []string{w.pattern()}
	}
	paths := make([]string, len(w.Parts))
	for i, p := range w.Parts {
		paths[i] = p.Path
	}
	return paths
}

// empty tells whether there is nothing to load, for certain.
func (w Written) empty(o Options) bool { return w.named(o) && len(w.Parts) == 0 }

// pattern finds the parts of a dataset below its folder.
func (w Written) pattern() string {
	name := "part-*" + w.extension()
	if w.Hive {
		return "dt=*/" + name
	}
	return name
}

func (w Written) extension() string {
	switch w.Compression {
	case "gzip":
		if w.text() {
			return "." + w.Format + ".gz"
		}
	case "zstd":
		if w.text() {
			return "." + w.Format + ".zst"
		}
	}
	return "." + w.Format
}

// text tells whether a compression lies around the format.
func (w Written) text() bool { return w.Format != "parquet" && w.Format != "arrow" }

// bucket divides a remote path into its bucket and what follows.
func (w Written) bucket() (bucket, key string) {
	_, rest, _ := strings.Cut(w.Path, "://")
	bucket, key, _ = strings.Cut(rest, "/")
	return bucket, key
}

// address is the HTTPS address of a remote path.
func (w Written) address() string {
	bucket, key := w.bucket()
	parts := strings.Split(key, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	key = strings.Join(parts, "/")
	host := "s3"
	if w.Region != "" {
		host += "." + w.Region
	}
	switch {
	case w.scheme() == "gs":
		return "https://storage.googleapis.com/" + bucket + "/" + key
	case w.Endpoint != "":
		return strings.TrimRight(w.Endpoint, "/") + "/" + bucket + "/" + key
	case strings.Contains(bucket, "."): // no certificate fits such a host
		return "https://" + host + ".amazonaws.com/" + bucket + "/" + key
	}
	return "https://" + bucket + "." + host + ".amazonaws.com/" + key
}

// only is a refusal of every scheme but those given.
func only(schemes ...string) func(Written) string {
	return func(w Written) string {
		if slices.Contains(schemes, w.scheme()) {
			return ""
		}
		return "the engine reads " + strings.Join(schemes, ":// or ") + ":// only; copy it there and give --location"
	}
}
