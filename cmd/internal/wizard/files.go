package wizard

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/formetl/formetl/cmd/internal/show"
	"github.com/formetl/formetl/load"
	"github.com/formetl/formetl/pipelines"
	"github.com/formetl/formetl/pipelines/definition"
	"github.com/formetl/formetl/pipelines/infer"
	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/schemas/nearest"
	"github.com/formetl/formetl/schemas/plain"
)

// editorSchema is the name of the JSON Schema beside a definition, which editors read.
const editorSchema = "definition.schema.json"

// chooseOutputs asks for one output after another. No answer costs a request.
func (s *Session) chooseOutputs(ctx context.Context) error {
	for {
		given := s.answered("path") // who gives paths gives all of them
		if err := s.askPages(ctx, []string{"kind"}, []string{"format"}, []string{"path", "partition"}, []string{"s3-endpoint", "s3-region"}); err != nil {
			return err
		}
		if len(s.later) == 0 {
			if !given {
				if err := s.ask(ctx, "another-output"); err != nil {
					return err
				}
			}
			if s.value("another-output") != yes {
				return nil
			}
			delete(s.answers, "another-output")
		}
		s.nextOutput()
	}
}

// chooseFiles asks for what is about all outputs, and for the definition's file.
func (s *Session) chooseFiles(ctx context.Context) error {
	from := s.folder() // where the key's reference was tried
	if err := s.askPages(ctx, []string{"mode", "names", "schema", "output"}); err != nil {
		return err
	}
	s.answers["api-key-reference"] = []string{rebased(s.value("api-key-reference"), from, s.folder())}
	return nil
}

// askPages asks page by page. What is right by itself may still contradict what was
// answered later, and is an error then.
func (s *Session) askPages(ctx context.Context, pages ...[]string) error {
	for _, page := range pages {
		if err := s.ask(ctx, page...); err != nil {
			return err
		}
	}
	_, err := s.parse(definitionText(s, ""), false)
	return s.asAnswer(err)
}

func kindProblem(s *Session) string {
	is := s.value("kind")
	if text := otherWord(is, file, dataset); text != "" {
		return text
	}
	return pathProblem(s)
}

// pathProblem tells of a path that is of another kind than was said.
func pathProblem(s *Session) string {
	path, kind := s.value("path"), s.value("kind")
	switch slash := strings.HasSuffix(path, "/"); {
	case kind == dataset && !slash:
		return fmt.Sprintf("%s has no slash at its end: a dataset's path ends with one, such as %s/", plain.Line(path), plain.Line(path))
	case kind == file && slash:
		return fmt.Sprintf("%s ends with a slash, and a file's path does not: write the file's name too", plain.Line(path))
	}
	return ""
}

// remoteProblem tells of an answer about S3 for a path that is elsewhere.
func remoteProblem(s *Session) string {
	if path := s.value("path"); s.answered("path") && !isRemote(s) {
		return fmt.Sprintf("%s is not in S3; leave this out, or write a path that begins with s3://", plain.Line(path))
	}
	return ""
}

func schemaProblem(s *Session) string {
	is := s.value("schema")
	if text := otherWord(is, inferred, none); text != "" {
		return text
	}
	if is == inferred && s.answered("form") && singleForm(s) == "" {
		return "a schema file is made from one form, and this definition is for several: leave it out; each run infers the columns of each form"
	}
	return ""
}

// otherWord says what is wrong with a word that is none of the known ones.
func otherWord(word string, known ...string) string {
	if slices.Contains(known, word) {
		return ""
	}
	if near := nearest.Word(word, known); near != "" {
		return fmt.Sprintf("%q is none of %s; did you mean %s?", word, strings.Join(known, ", "), near)
	}
	return fmt.Sprintf("%q is none of %s", word, strings.Join(known, ", "))
}

func fileProblem(s *Session) string {
	path := s.value("output")
	if ext := strings.ToLower(filepath.Ext(path)); ext != ".yaml" && ext != ".yml" {
		return "a definition's name ends with .yaml"
	}
	folder := filepath.Dir(path)
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return fmt.Sprintf("the folder %s is not there; make it first, or give another one", plain.Line(folder))
	}
	if there := existing(s); there != "" {
		return there + " is there; give another name, or --force to replace it"
	}
	return ""
}

// schemaFile is the path of the schema file, "" where none is to be written.
func schemaFile(s *Session) string {
	if s.value("schema") != inferred || singleForm(s) == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(s.value("output")), pipeline(s)+".schema.yaml")
}

// existing is the first file that is there and would be replaced.
func existing(s *Session) string {
	if s.flags.Force {
		return ""
	}
	for _, path := range []string{s.value("output"), schemaFile(s)} {
		if _, err := os.Lstat(path); path != "" && err == nil {
			return path
		}
	}
	return ""
}

// madeFile is a file that is to be written.
type madeFile struct {
	path, about string
	data        []byte
}

// writeFiles makes all files, and then writes them.
func (s *Session) writeFiles(ctx context.Context) error {
	var files []madeFile
	schema := ""
	if at := schemaFile(s); at != "" {
		made, err := inferSchema(ctx, s, at)
		if err != nil {
			return err
		}
		schema = filepath.Base(at)
		files = append(files, made)
	}
	beside := filepath.Join(filepath.Dir(s.value("output")), editorSchema)
	if _, err := os.Lstat(beside); err != nil {
		files = append(files, madeFile{beside, "completes keys in editors", pipelines.DefinitionSchema})
	}
	files = append(files, madeFile{s.value("output"), "the definition", []byte(definitionText(s, schema))})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := writeAll(files); err != nil {
		return err
	}
	var rows [][]string
	for _, f := range files {
		rows = append(rows, []string{f.path, f.about})
	}
	s.o.Tell("\nWritten:\n" + strings.TrimRight(show.Columns("  ", rows), "\n") + "\n")
	return nil
}

// inferSchema makes the schema file of the form. Where a file is to be replaced, its
// columns keep what they declare.
func inferSchema(ctx context.Context, s *Session, path string) (madeFile, error) {
	def, err := s.source(ctx)
	if err != nil {
		return madeFile{}, err
	}
	var base *schemas.Schema
	if _, err := os.Lstat(path); err == nil {
		if base, err = definition.LoadSchema(path, nil); err != nil {
			return madeFile{}, err
		}
	}
	s.o.Tell("Looking at a sample of the results ...")
	made, err := infer.Schema(ctx, def, s.o.Account, singleForm(s), infer.Options{Base: base, Personal: true})
	if err != nil {
		return madeFile{}, err
	}
	data, err := definition.FormatSchema(made.Schema, made.Notes)
	about := fmt.Sprintf("%s, from %s", show.Plural(len(made.Schema.Columns), "column"), show.Plural(made.Sampled.Results, "result"))
	return madeFile{path, about, data}, err
}

// writeAll writes all files, or none if one cannot be written: each is written beside its
// place first, and renamed once all of them are written.
func writeAll(files []madeFile) error {
	var staged []string
	err := func() error {
		for _, f := range files {
			path, err := stage(f)
			if err != nil {
				return notWritten(f, err)
			}
			staged = append(staged, path)
		}
		for _, f := range files {
			if err := os.Rename(staged[0], f.path); err != nil {
				return notWritten(f, err)
			}
			staged = staged[1:]
		}
		return nil
	}()
	for _, path := range staged {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

func notWritten(f madeFile, err error) error {
	return &load.CreateError{Op: "write", Path: f.path, Hint: "give a file in a folder that can be written to", Err: err}
}

// stage writes what the file holds to a temporary file beside it, and gives that file's path.
func stage(f madeFile) (string, error) {
	file, err := os.CreateTemp(filepath.Dir(f.path), "."+filepath.Base(f.path)+"-*")
	if err != nil {
		return "", err
	}
	_, err = file.Write(f.data)
	err = errors.Join(err, file.Chmod(0o640), file.Sync(), file.Close())
	if err != nil {
		return "", errors.Join(err, os.Remove(file.Name()))
	}
	return file.Name(), nil
}
