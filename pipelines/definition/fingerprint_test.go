package definition_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formetl/formetl/extract"
	"github.com/formetl/formetl/extract/transport"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/schemas"
)

// notRead are the parts of a definition that have no part in which rows are
// read. Whatever else a definition has, or gets one day, is in its fingerprint.
var notRead = []string{
	"File", "Forms", "Exclude", "State", "StateS3", "Outputs", "Files", "Source.Key", "Source.Requests",
	"Extract.From", "Extract.To", "Extract.Window", "Extract.Incremental", "Extract.Lookback", "Extract.Changes",
	"Variables", "Given", "Warnings", "Extract.Verify", "Source.API",
}

func TestFingerprintHoldsEverythingElse(t *testing.T) {
	base := func() *definition.Definition {
		return &definition.Definition{Source: definition.Source{Zone: time.UTC}, Schema: &schemas.Schema{}}
	}
	plain, err := base().Fingerprint()
	if err != nil {
		t.Fatal(err)
	}
	met := map[string]bool{}
	for _, path := range leaves(reflect.TypeFor[definition.Definition](), "") {
		def := base()
		change(t, fieldAt(reflect.ValueOf(def).Elem(), path), path)
		print, err := def.Fingerprint()
		if err != nil {
			t.Fatal(err)
		}
		out := slices.IndexFunc(notRead, func(prefix string) bool { return path == prefix || strings.HasPrefix(path, prefix+".") })
		if out >= 0 {
			met[notRead[out]] = true
		}
		if (print == plain) != (out >= 0) {
			t.Errorf("%s: the fingerprint changes with it: %t", path, print != plain)
		}
	}
	for _, path := range notRead {
		if !met[path] {
			t.Errorf("a definition has no %s", path)
		}
	}
}

// leaves are the paths of the exported fields that are no structs of this package.
func leaves(of reflect.Type, prefix string) (paths []string) {
	for i := range of.NumField() {
		f := of.Field(i)
		if !f.IsExported() {
			continue
		}
		path := strings.TrimPrefix(prefix+"."+f.Name, ".")
		if f.Type.Kind() == reflect.Struct && f.Type.PkgPath() == of.PkgPath() {
			paths = append(paths, leaves(f.Type, path)...)
			continue
		}
		paths = append(paths, path)
	}
	return paths
}

func fieldAt(v reflect.Value, path string) reflect.Value {
	for name := range strings.SplitSeq(path, ".") {
		v = v.FieldByName(name)
	}
	return v
}

// change gives a field another value.
func change(t *testing.T, v reflect.Value, path string) {
	t.Helper()
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Unix(1, 0)))
		return
	case *time.Location:
		v.Set(reflect.ValueOf(time.FixedZone("elsewhere", 3600)))
		return
	case transport.Secret:
		v.Set(reflect.ValueOf(transport.NewSecret("another")))
		return
	case extract.Period:
		v.Set(reflect.ValueOf(extract.Period{Days: 3}))
		return
	case extract.Search:
		v.Set(reflect.ValueOf(extract.Search{Any: true}))
		return
	case *definition.S3:
		v.Set(reflect.ValueOf(&definition.S3{Region: "another"}))
		return
	case *definition.Files:
		v.Set(reflect.ValueOf(&definition.Files{Path: "another/"}))
		return
	case *schemas.Schema:
		v.Set(reflect.ValueOf(&schemas.Schema{Name: "another"}))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("another")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	default:
		t.Fatalf("%s: the test knows no other value of a %s", path, v.Type())
	}
}
